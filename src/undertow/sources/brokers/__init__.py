"""Messages of a broker as a stream of slices: NATS JetStream, Kafka."""
