"""Kinds of images, and their import: once, whole, with room for it, and only what the user may rely on."""

import json
import multiprocessing
import os
import subprocess
from pathlib import Path

import pytest

from agents.containers.entry import Entry
from agents.containers.images import Image, ImageDirectory, ImageError, Kind, image_of
from agents.containers.runtimes import RUNTIMES, _unpack, command_of
from agents.containers.settings import ContainerSettings
from protos.gpu_vendors import NVIDIA, GpuVendor, Pairs


def settings(directory: Path, **more: object) -> ContainerSettings:
    """Settings with a directory of images and little room wanted."""
    return ContainerSettings(("bubblewrap",), str(directory), space_mib=1)._replace(**more)  # type: ignore[arg-type]


@pytest.fixture
def archive(tmp_path: Path) -> Image:
    """An archive with one file."""
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "file").write_text("content")
    subprocess.run(["tar", "-C", tmp_path / "from", "-cf", tmp_path / "a.tar", "."], check=True)
    return Image(Kind.ARCHIVE, str(tmp_path / "a.tar"))


def copying(image: Image, log: Path) -> list[str]:
    """A command line that notes that it was run, takes a moment and copies the archive to its last argument."""
    script = f"echo run >> {log}; sleep 0.2; cp {image.source} $0"
    return ["sh", "-c", script]


@pytest.mark.parametrize(
    ("text", "kind", "source"),
    [
        ("ubuntu:24.04", Kind.REGISTRY, "ubuntu:24.04"),
        ("docker://ubuntu", Kind.REGISTRY, "docker://ubuntu"),
        ("nvcr.io/nvidia/pytorch:25.01-py3", Kind.REGISTRY, "nvcr.io/nvidia/pytorch:25.01-py3"),
        ("root", Kind.REGISTRY, "root"),
        ("./root", Kind.DIRECTORY, "{cwd}/root"),
        ("{cwd}/root", Kind.DIRECTORY, "{cwd}/root"),
        ("file://{cwd}/root", Kind.DIRECTORY, "{cwd}/root"),
        ("~/root", Kind.DIRECTORY, "{cwd}/root"),
        ("a.sif", Kind.SIF, "{cwd}/a.sif"),
        ("a.tar.gz", Kind.ARCHIVE, "{cwd}/a.tar.gz"),
    ],
)
def test_the_kind_is_told_by_the_name(tmp_path: Path, text: str, kind: Kind, source: str) -> None:
    """A local image is never looked for in a registry, nor the other way round."""
    (tmp_path / "root").mkdir()
    for name in ("a.sif", "a.tar.gz"):
        (tmp_path / name).touch()
    found = image_of(text.format(cwd=tmp_path), str(tmp_path), str(tmp_path))
    assert found == Image(kind, source.format(cwd=tmp_path))


@pytest.mark.parametrize("text", ["/nowhere/root", "./nowhere", "my.sif", "file:///nowhere"])
def test_a_missing_file_is_named(tmp_path: Path, text: str) -> None:
    """A path that is not there is an error, with the path."""
    with pytest.raises(ImageError, match=r"The image /\S+ cannot be used: No such file or directory\."):
        image_of(text, str(tmp_path), str(tmp_path))


@pytest.mark.slow
def test_many_import_an_image_once(tmp_path: Path, archive: Image) -> None:
    """Four processes want the same image at the same moment: one imports it, and all get it whole."""
    directory, log = ImageDirectory(settings(tmp_path / "images"), ""), tmp_path / "log"

    def use() -> None:
        path = directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
        os._exit(0 if Path(path).stat().st_size == Path(archive.source).stat().st_size else 1)

    processes = [multiprocessing.get_context("fork").Process(target=use) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(20)
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "run\n"
    assert not list((tmp_path / "images").glob("*.part-*"))


def test_a_changed_archive_is_another_image(tmp_path: Path, archive: Image) -> None:
    """It is imported again, beside the old one, which jobs may still run from."""
    directory, log = ImageDirectory(settings(tmp_path / "images"), ""), tmp_path / "log"
    first = directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
    os.utime(archive.source, ns=(1, 1))
    second = directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
    assert first != second
    assert log.read_text() == "run\nrun\n"


def test_a_failed_import_leaves_nothing(tmp_path: Path, archive: Image) -> None:
    """The error is the program's last words, and what an import before it left is removed as well."""
    directory = ImageDirectory(settings(tmp_path / "images"), "")
    (tmp_path / "images").mkdir()
    with pytest.raises(ImageError, match=r"a\.tar cannot be imported: no such tag"):
        directory.imported(archive, ".x", lambda made: ["sh", "-c", f"mkdir {made}; echo no such tag >&2; exit 1"])
    assert {path.suffix for path in (tmp_path / "images").iterdir()} == {".lock"}


@pytest.mark.root
def test_only_own_parts_of_killed_imports_are_removed(tmp_path: Path, archive: Image) -> None:
    """A link that a user plants is not followed, and parts of other users are theirs; read-only ones go, too."""
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o000)
    (secret / "key").touch(mode=0o000)
    directory = ImageDirectory(settings(tmp_path / "images"), "")
    first = Path(directory.imported(archive, ".tar", lambda made: [*copying(archive, tmp_path / "log"), made]))
    first.unlink()
    own, link, others, file = (
        first.with_name(f"{first.name}.part-{name}") for name in ("own", "link", "others", "file")
    )
    for part in (own, others):
        (part / "inner").mkdir(parents=True)
        (part / "inner").chmod(0o500)
    (own / "inner" / "out").symlink_to(secret)
    os.chown(others, 65533, 65533)
    link.symlink_to(secret)
    file.touch()
    assert directory.imported(archive, ".tar", lambda made: [*copying(archive, tmp_path / "log"), made]) == str(first)
    assert [one.exists() for one in (own, link, others, file)] == [False, True, True, True]
    assert [one.stat().st_mode & 0o777 for one in (secret, secret / "key")] == [0, 0]


def test_room_is_looked_for_first(tmp_path: Path, archive: Image) -> None:
    """An image is not imported into a file system without room for it; both figures are told."""
    directory = ImageDirectory(settings(tmp_path / "images", space_mib=1 << 40), "")
    with pytest.raises(ImageError, match=r"is not imported: that may need \d+ MiB in \S+, where \d+ MiB are free\."):
        directory.imported(archive, ".tar", lambda made: [*copying(archive, tmp_path / "log"), made])
    assert not (tmp_path / "log").exists()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, archive: Image) -> None:
    """A directory of images that is a file is named in the error."""
    (tmp_path / "images").touch()
    with pytest.raises(ImageError, match=r"a\.tar cannot be imported to \S+/images"):
        ImageDirectory(settings(tmp_path / "images"), "").imported(archive, ".x", lambda made: ["true", made])


@pytest.mark.root
def test_images_of_other_users_are_not_used(tmp_path: Path, archive: Image) -> None:
    """A file of another user under an image's name is passed over, unless the site trusts all."""
    directory, log = ImageDirectory(settings(tmp_path / "images"), ""), tmp_path / "log"
    path = directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
    os.chown(path, 12345, 12345)
    assert ImageDirectory(settings(tmp_path / "images", trusts_all=True), "").imported(archive, ".tar", list) == path
    with pytest.raises(ImageError, match="cannot be imported"):  # its name is taken
        directory.imported(archive, ".tar", lambda made: ["false", made])


@pytest.mark.root
@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        (12345, 0o755, "it belongs to the user with the number 12345"),
        (12345, 0o1777, "it belongs to the user with the number 12345"),
        (0, 0o777, r"others may change it \(mode 777\)"),
        (0, 0o775, r"others may change it \(mode 775\)"),
    ],
)
def test_a_directory_that_others_may_change_is_not_used(
    tmp_path: Path, archive: Image, owner: int, mode: int, why: str
) -> None:
    """Neither for an image that is there nor for an import: its owner could put another image in its place."""
    images = tmp_path / "images"
    directory, log = ImageDirectory(settings(images), ""), tmp_path / "log"
    directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
    os.chown(images, owner, owner)
    images.chmod(mode)
    with pytest.raises(ImageError, match=rf"The directory of images {images} is not used: {why}"):
        directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
    assert log.read_text() == "run\n"


def test_a_link_under_the_name_of_an_image_is_not_followed(tmp_path: Path, archive: Image) -> None:
    """Its target may be exchanged by the owner of that; the site's own path may be a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "images").symlink_to("real")
    directory, log = ImageDirectory(settings(tmp_path / "images"), ""), tmp_path / "log"
    first = Path(directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made]))
    first.unlink()
    first.symlink_to(archive.source)
    directory.imported(archive, ".tar", lambda made: [*copying(archive, log), made])
    assert log.read_text() == "run\nrun\n"
    assert not first.is_symlink()


@pytest.mark.root
def test_a_lock_of_another_user_holds_up_nothing(tmp_path: Path, archive: Image) -> None:
    """One that is made in advance is named, where only this user imports."""
    directory = ImageDirectory(settings(tmp_path / "images"), "")
    path = Path(directory.imported(archive, ".tar", lambda made: [*copying(archive, tmp_path / "log"), made]))
    path.unlink()
    os.chown(f"{path}.lock", 12345, 12345)
    with pytest.raises(ImageError, match="is another user's lock"):
        directory.imported(archive, ".tar", lambda made: [*copying(archive, tmp_path / "log"), made])


def test_an_unpacked_image_gives_no_rights_to_others(tmp_path: Path) -> None:
    """It has, whatever its archive says, no rights of others to write, and no program that gives its owner's rights."""
    tree = tmp_path / "from"
    (tree / "opt").mkdir(parents=True)
    (tree / "opt" / "run").write_text("program")
    (tree / "opt" / "run").chmod(0o6777)
    (tree / "opt").chmod(0o777)
    subprocess.run(["tar", "-C", tree, "-cpf", tmp_path / "a.tar", "."], check=True)
    subprocess.run(_unpack(str(tmp_path / "a.tar"), str(tmp_path / "made")), check=True)
    modes = [(tmp_path / "made" / name).stat().st_mode & 0o7777 for name in ("opt", "opt/run")]
    assert modes == [0o755, 0o755]


def test_no_runtime_for_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either the site has none that takes it, or the host lacks the program."""
    images = ImageDirectory(settings(tmp_path), "")
    entry = Entry("x:1", "n", "/", (), "", (), settings(tmp_path))
    with pytest.raises(ImageError, match=r"x:1 is an image of a registry, which this site's runtimes \(bubblewrap\)"):
        command_of(entry, Image(Kind.REGISTRY, "x:1"), images, "/root", ["true"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="The image /x needs bubblewrap, which this host has not"):
        command_of(entry, Image(Kind.DIRECTORY, "/x"), images, "/root", ["true"])


def test_apptainer_is_told_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command line has directories, files at fixed paths, GPUs, the working directory and the program."""
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n[ $1 = pull ] && echo image > $4\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    tree = tmp_path / "tree"
    for name in ("etc/volcano/ps.host", "etc/hosts"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    own = settings(tmp_path / "images", runtimes=("apptainer",), binds=("/dev/shm:/scratch:ro",))
    entry = Entry("x:1", "n", str(tmp_path), (), str(tree), NVIDIA.in_containers, own)
    command = command_of(entry, Image(Kind.REGISTRY, "x:1"), ImageDirectory(own, ""), "", ["prog", "a b"])
    line = " ".join(command.argv)
    assert line.startswith("apptainer --silent exec --nv --bind /tmp:/tmp ")
    for part in (
        "--bind /dev/shm:/scratch:ro",
        f"--bind {tree}/etc/volcano:/etc/volcano",
        f"--bind {tree}/etc/hosts:/etc/hosts",
        f"--pwd {tmp_path} -- {tmp_path}/images/x-1-",
    ):
        assert part in line
    assert command.argv[-2:] == ("prog", "a b")


def test_gpus_in_a_container_are_their_vendors_affair(tmp_path: Path) -> None:
    """Each vendor says which option a runtime needs; a task without GPUs has none, and other runtimes need none."""
    vendor = GpuVendor("other", "Other", "OTHER_DEVICES", in_containers=(("apptainer", "--other"),))
    own = settings(tmp_path / "images", runtimes=("apptainer", "bubblewrap"))

    def options(runtime: str, gpu_options: Pairs) -> list[str]:
        entry = Entry("/x.sif", "n", "/", (), "", gpu_options, own)
        command = RUNTIMES[runtime].command(entry, Image(Kind.SIF, "/x.sif"), ImageDirectory(own, ""), [], ["prog"])
        return [one for one in command.argv if one in ("--other", "--nv")]

    assert options("apptainer", vendor.in_containers) == ["--other"]
    assert options("apptainer", NVIDIA.in_containers) == ["--nv"]
    assert options("apptainer", ()) == []
    assert options("bubblewrap", NVIDIA.in_containers) == []


def test_an_entry_is_read_as_it_was_packed(tmp_path: Path) -> None:
    """One of an agent of an earlier version, too, which only says whether there are GPUs: those of NVIDIA."""
    entry = Entry("/x.sif", "n", "/", ("/s",), "", NVIDIA.in_containers, settings(tmp_path))
    assert Entry.of(entry.packed()) == entry
    for has_gpus, expected in ((True, NVIDIA.in_containers), (False, ())):
        earlier = json.dumps(entry._replace(gpu_options=has_gpus))  # type: ignore[arg-type]
        assert Entry.of(earlier).gpu_options == expected
