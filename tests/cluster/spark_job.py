"""A streaming job to be killed: python spark_job.py FOLDER MASTER KIND. Writes FOLDER/result.parquet at its end."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))
import streams_of_tests as streams

import undertow as ut


def session(master):
    """Small heaps, and no network beyond this machine."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "8",
    }
    builder = SparkSession.builder.master(master).appName("undertow")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(folder, master, kind):
    spark = session(master)
    schema = "router string, src string, dst string, bytes double, at timestamp"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    found = ut.spark.apply(
        rows,
        modes=streams.MODES,
        model=streams.model(kind),
        shards=4,
        late="1 minute",
        output="slices",
        **streams.NAMES,
    )
    query = (
        found.writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.read.parquet(f"{folder}/out").toPandas().to_parquet(f"{folder}/result.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
