"""Small real files of every format, all holding the same kind of stream: 7 slices of 6 × 5 entries."""

import gzip
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from undertow.sources import open_stream

LENGTH, ROWS, COLUMNS = 7, 6, 5
SHAPE = (ROWS, COLUMNS)
START = np.datetime64("2024-05-01T12:00", "us")
SOURCES = [f"s{i}" for i in range(ROWS)]
TARGETS = list(range(COLUMNS))


def numbers(seed=0):
    """The stream: distinct integers below 256, so that every format can hold them exactly."""
    rng = np.random.default_rng(seed)
    return rng.permutation(LENGTH * ROWS * COLUMNS).reshape(LENGTH, *SHAPE).astype(np.float64)


def moments():
    return START + np.arange(LENGTH) * np.timedelta64(5, "m")


@dataclass
class Made:
    """One file: how to open it, and whether it holds the numbers exactly."""

    path: Path
    options: dict = field(default_factory=dict)
    exact: bool = True

    def open(self, **more):
        return open_stream(self.path, **self.options, **more)


def values(stream):
    return np.array([item.values for item in stream.slices()])


class Trap:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def make_npy(folder):
    np.save(folder / "a.npy", numbers())
    return Made(folder / "a.npy")


def make_npy_last_axis(folder):
    np.save(folder / "last.npy", np.moveaxis(numbers(), 0, -1).astype("f4"))
    return Made(folder / "last.npy", {"time_axis": -1})


def make_npy_fortran(folder):
    np.save(folder / "f.npy", np.asfortranarray(np.moveaxis(numbers(), 0, -1).astype(">i2")))
    return Made(folder / "f.npy", {"time_axis": 2})


def make_npz(folder):
    np.savez(folder / "a.npz", values=numbers(), time=moments())
    return Made(folder / "a.npz")


def make_npz_compressed(folder):
    np.savez_compressed(folder / "compressed.npz", values=numbers(), time=np.arange(LENGTH))
    return Made(folder / "compressed.npz")


def make_npz_compressed_scattered(folder):
    np.savez_compressed(folder / "scattered.npz", values=np.moveaxis(numbers(), 0, 1))
    return Made(folder / "scattered.npz", {"time_axis": 1})


def make_mat5(folder):
    from scipy.io import savemat

    data = {"X": np.moveaxis(numbers(), 0, -1), "time": np.arange(LENGTH) * 2.0, "note": "hello"}
    savemat(folder / "five.mat", data, do_compression=True)
    return Made(folder / "five.mat")


def make_mat73(folder):
    import h5py

    with h5py.File(folder / "seven.mat", "w", userblock_size=512) as file:
        matlab_order = np.moveaxis(numbers(), 0, -1)
        file.create_dataset("X", data=matlab_order.T, chunks=(2, COLUMNS, ROWS), compression="gzip")
        file.create_dataset("t", data=np.arange(LENGTH)[:, None] * 0.5)
    with open(folder / "seven.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(512, b" "))
    return Made(folder / "seven.mat")


def labelled():
    import xarray

    coords = {"time": moments().astype("datetime64[ns]"), "src": SOURCES, "dst": TARGETS}
    return xarray.DataArray(numbers(), coords, ("time", "src", "dst"), name="flow")


def make_netcdf(folder):
    labelled().transpose("src", "time", "dst").to_netcdf(folder / "a.nc", engine="h5netcdf")
    return Made(folder / "a.nc")


def make_netcdf3(folder):
    labelled().drop_vars("src").to_netcdf(folder / "three.nc", engine="scipy")
    return Made(folder / "three.nc")


def make_hdf5(folder):
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("group/data", data=numbers(), chunks=(3, 6, 5), compression="gzip")
    return Made(folder / "a.h5")


def make_zarr(folder):
    labelled().to_dataset().to_zarr(folder / "a.zarr", encoding={"flow": {"chunks": (3, 6, 5)}}, consolidated=False)
    return Made(folder / "a.zarr")


def make_zarr2(folder):
    labelled().to_dataset().to_zarr(folder / "two.zarr", zarr_format=2)
    return Made(folder / "two.zarr")


TABLE = {"time": "t", "modes": "src,dst", "value": "bytes"}


def rows(shuffled=False):
    found = [
        (moments()[t], SOURCES[i], TARGETS[j], numbers()[t, i, j])
        for t in range(LENGTH)
        for i in range(ROWS)
        for j in range(COLUMNS)
    ]
    if shuffled:
        np.random.default_rng(1).shuffle(found)
    return found


def csv_text(shuffled=False):
    return "t,src,dst,bytes,more\n" + "".join(f"{t},{i},{j},{x},x y\n" for t, i, j, x in rows(shuffled))


def make_csv(folder):
    (folder / "a.csv").write_text(csv_text())
    return Made(folder / "a.csv", dict(TABLE))


def make_csv_compressed(folder):
    (folder / "a.csv.gz").write_bytes(gzip.compress(csv_text().encode(), mtime=0))
    return Made(folder / "a.csv.gz", dict(TABLE))


def make_csv_shuffled(folder):
    (folder / "mixed.csv").write_text(csv_text(shuffled=True))
    return Made(folder / "mixed.csv", dict(TABLE))


def make_csv_free_places(folder):
    """Labels take the places as they come, and as many places as labels will come are free at first."""
    (folder / "free.csv").write_text(csv_text())
    return Made(folder / "free.csv", {**TABLE, "capacity": {"src": ROWS}, "labels": {"dst": TARGETS}})


def make_wide(folder):
    """A column per entry of the first slice's rows: the stream as vectors."""
    names = ",".join(f"{i}{j}" for i in SOURCES for j in TARGETS)
    lines = [f"{t},{','.join(map(str, x.ravel()))}" for t, x in zip(moments(), numbers(), strict=True)]
    (folder / "wide.csv").write_text("\n".join([f"time,{names}", *lines]) + "\n")
    return Made(folder / "wide.csv", exact=False)


def arrow_table():
    import pyarrow as pa

    columns = list(zip(*rows(), strict=True))
    return pa.table({"t": np.array(columns[0]), "src": columns[1], "dst": columns[2], "bytes": columns[3]})


def make_parquet(folder):
    import pyarrow.parquet as pq

    pq.write_table(arrow_table(), folder / "a.parquet", row_group_size=40)
    return Made(folder / "a.parquet", dict(TABLE))


def make_arrow_rows(folder):
    import pyarrow as pa

    with pa.ipc.new_file(folder / "rows.arrow", arrow_table().schema) as writer:
        writer.write_table(arrow_table(), max_chunksize=50)
    return Made(folder / "rows.arrow", dict(TABLE))


def arrow_slices():
    import pyarrow as pa

    return pa.table({"time": moments(), "values": pa.array(numbers().tolist())})


def make_arrow(folder):
    import pyarrow as pa

    with pa.ipc.new_stream(folder / "a.arrows", arrow_slices().schema) as writer:
        writer.write_table(arrow_slices(), max_chunksize=3)
    return Made(folder / "a.arrows")


def json_lines():
    return "".join(
        json.dumps({"time": str(time), "values": x.tolist()}) + "\n"
        for time, x in zip(moments(), numbers(), strict=True)
    )


def make_jsonl(folder):
    (folder / "a.jsonl").write_text(json_lines())
    return Made(folder / "a.jsonl")


def make_json_rows(folder):
    lines = [json.dumps({"t": str(t), "src": i, "dst": j, "bytes": x}) for t, i, j, x in rows()]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return Made(folder / "rows.jsonl", dict(TABLE))


def make_yuv(folder):
    planes = [np.concatenate([x.ravel(), np.full(2 * 9, 128)]).astype(np.uint8) for x in numbers() % 256]
    (folder / "a.yuv").write_bytes(b"".join(plane.tobytes() for plane in planes))
    return Made(folder / "a.yuv", {"size": f"{COLUMNS}x{ROWS}"})


def make_images(folder):
    from PIL import Image

    (folder / "images").mkdir()
    for t, x in enumerate(numbers()):
        Image.fromarray(x.astype(np.uint8)).save(folder / "images" / f"frame{t + 6}.png")
    return Made(folder / "images")


def make_arrays_folder(folder):
    (folder / "arrays").mkdir()
    for t, x in enumerate(numbers()):
        np.save(folder / "arrays" / f"{t}.npy", x)
    return Made(folder / "arrays")


def make_nifti(folder):
    import nibabel

    volumes = np.moveaxis(numbers(), 0, -1).reshape(ROWS, COLUMNS, 1, LENGTH).astype(np.int16)
    image = nibabel.Nifti1Image(volumes, np.eye(4))
    image.header.set_zooms((1, 1, 1, 2.5))
    nibabel.save(image, folder / "a.nii")
    return Made(folder / "a.nii", {"select": {"z": [0]}}, exact=False)


def make_nifti_compressed(folder):
    import nibabel

    volume = np.moveaxis(numbers(), 0, -1).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), folder / "a.nii.gz")
    return Made(folder / "a.nii.gz")


def dicom_dataset(x, number, location=0.0, trigger=0.0):
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage

    header = Dataset()
    header.file_meta = FileMetaDataset()
    header.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    header.file_meta.MediaStorageSOPClassUID = header.SOPClassUID = MRImageStorage
    header.file_meta.MediaStorageSOPInstanceUID = header.SOPInstanceUID = f"1.2.3.{number + 1}"
    header.SeriesInstanceUID = "1.2.3"
    header.InstanceNumber, header.SliceLocation, header.TriggerTime = number + 1, location, trigger
    header.Rows, header.Columns = x.shape
    header.SamplesPerPixel, header.PhotometricInterpretation = 1, "MONOCHROME2"
    header.BitsAllocated = header.BitsStored = 16
    header.HighBit, header.PixelRepresentation = 15, 0
    header.RescaleSlope, header.RescaleIntercept = 2, -10
    header.PixelData = ((x + 10) / 2).astype("<u2").tobytes()
    return header


def make_dicom(folder):
    (folder / "series").mkdir()
    for t, x in enumerate(numbers()):
        header = dicom_dataset(2 * x, t, trigger=100.0 * t)
        header.save_as(folder / "series" / f"im{LENGTH - t}.dcm", enforce_file_format=True)
    return Made(folder / "series", exact=False)


def make_dicom_frames(folder):
    header = dicom_dataset(2 * numbers()[0], 0)
    header.NumberOfFrames = LENGTH
    header.PixelData = numbers().astype("<u2").tobytes()
    header.RescaleSlope, header.RescaleIntercept = 1, 0
    header.save_as(folder / "many.dcm", enforce_file_format=True)
    return Made(folder / "many.dcm")


def video(path, codec, count=LENGTH, bright=250, **options):
    """A bright row that moves; 16 × 16 because codecs want even sizes."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10, options=options)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        for t in range(count):
            image = np.full((16, 16, 3), 40 + 3 * t, np.uint8)
            image[t % 16] = bright
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, "rgb24")))
        container.mux(stream.encode())
    return path


def make_video(folder):
    return Made(video(folder / "a.mp4", "mpeg4", count=15, g="4"), exact=False)


def make_video_colour(folder):
    return Made(video(folder / "a.mkv", "ffv1", bright=(250, 150, 150)), {"colour": True}, exact=False)


MAKERS = {name.removeprefix("make_"): maker for name, maker in list(globals().items()) if name.startswith("make_")}
