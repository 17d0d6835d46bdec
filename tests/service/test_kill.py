import numpy as np
import pytest
from level_service import Level
from processes import start

from undertow import Client

pytestmark = pytest.mark.slow


def slice_of(number):
    x = np.random.default_rng(number).normal(size=(6, 5))
    x[1, 1] = np.nan
    return x


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.full)])
def test_killed_again_and_again_nothing_acknowledged_is_lost_and_nothing_learned_twice(tmp_path, kills, tried):
    killed(tmp_path / "s.db", kills)
    tried("service killed with kill -9", kills + 1)


def killed(store, kills):
    """Feed a service, kill it, start it again, so many times; everything must be as if it had never been killed."""
    model, number, port = Level(), 0, 0
    expected = []
    for _ in range(kills + 1):
        process, address = start(store, port)
        port = int(address.rpartition(":")[2])
        with Client(address) as client:
            assert client.create("flows", (6, 5))["next"] == number
            for _ in range(33):
                answer = client.push("flows", slice_of(number), sequence=number)["results"][0]
                result = model.update(slice_of(number))
                np.testing.assert_array_equal(answer["mean"], result.mean)
                expected.append(float(result.noise_std))
                number += 1
            for _ in range(5):  # acknowledged, but perhaps not learned when it is killed
                client.push("flows", slice_of(number), sequence=number, asynchronous=True)
                expected.append(float(model.update(slice_of(number)).noise_std))
                number += 1
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
    process, address = start(store, port)
    with Client(address) as client:
        answer = client.push("flows", slice_of(number), sequence=number)["results"][0]
        np.testing.assert_array_equal(answer["mean"], model.update(slice_of(number)).mean)
        client.push("flows", slice_of(0), sequence=0)  # comes back once everything is kept
        assert client.series("flows", most=10_000)["numbers"]["noise_std"][:number] == expected
    process.terminate()
    assert process.wait(30) in (0, -15)  # uvicorn passes the signal on once everything is saved
    process.stdout.close()
    process.stderr.close()
