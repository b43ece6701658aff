"""`durasim artifact`: contents, equal bytes, no private texts, refusals."""

import csv
import io
import json
import re
import stat
import subprocess
import tarfile
import tomllib
from pathlib import Path

import jsonschema
import pytest
from packing import PACKAGE, Author, all_contents, members_of, wheel_of_durasim

import durasim as ds
from durasim.artifacts import packed, private, wheels
from durasim.artifacts.archive import Member, write
from durasim.artifacts.packed import PackedFiles
from durasim.papers import paper_files
from durasim.studies import contents

TOP = "small-study-artifact"


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    """An author with a simulated study, and its artifact in the folder of the study."""
    of = Author(tmp_path_factory.mktemp("author"))
    of.sweep()
    done = of.artifact("study.toml")
    assert done.returncode == 0, done.stderr
    of.packed = of.study / f"{TOP}.tar.gz"
    of.printed = done.stdout
    return of


@pytest.fixture(scope="module")
def members(author):
    return {name.removeprefix(f"{TOP}/"): content for name, content in members_of(author.packed).items()}


def test_it_has_configuration_wheels_programs_results_and_a_script(members):
    fixed = {"MANIFEST.sha256", "README.md", "points.json", "requirements.lock", "run.sh", "study.toml"}
    assert fixed <= members.keys()
    others = {re.sub(r"[0-9a-f]{16}", "HASH", name) for name in members.keys() - fixed}
    program = next(name for name in others if name.startswith("programs/"))
    assert re.fullmatch(r"programs/HASH/btree-markers-HASH", program)
    version = ds.__version__
    assert others - {program} == {
        "machines/HASH/own-machine.toml", "results/1.json", "results/2.json", "results/numbers.csv",
        f"wheels/durasim-{version}-py3-none-any.whl", "wheels/made_up_library-1.2-py3-none-any.whl",
    }  # fmt: skip
    assert (
        members[next(name for name in members if name.startswith("machines/"))]
        == (PACKAGE / "machines" / "tiny.toml").read_bytes()
    )


def test_the_command_prints_what_it_has_packed(author):
    assert f"wrote {TOP}.tar.gz" in author.printed
    assert "2 simulations, 1 program, 2 wheels, 2 rows of numbers" in author.printed


def test_points_have_the_stored_documents_and_paths_of_the_artifact(author, members):
    described = json.loads(members["points.json"])
    schema = json.loads((PACKAGE / "schemas" / "artifact.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(described)
    results = [ds.RunResult.from_dict(json.loads(members[point["result"]])) for point in described["points"]]
    swept = json.loads(author.run("sweep", author.file, "--store", author.store, "--json", "-").stdout)
    assert [result.digest for result in results] == [point["digest"] for point in swept["points"]]
    assert swept["reused"] == 2
    for point in described["points"]:
        assert point["request"]["elf"] in members
        assert point["request"]["machine"] in members


def test_the_study_file_has_paths_of_the_artifact(members):
    tables = tomllib.loads(members["study.toml"].decode())
    assert tables["machine"] in members
    assert {**tables, "machine": "own-machine.toml"} == tomllib.loads(Path(__file__).with_name("packing.py").read_text()
        .split('STUDY = """')[1].split('"""')[0])  # fmt: skip


def test_the_manifest_and_the_requirements_have_all_hashes(author, tmp_path, members):
    with tarfile.open(author.packed) as archive:
        archive.extractall(tmp_path, filter="data")
    command = ["sha256sum", "--check", "--strict", "MANIFEST.sha256"]
    checked = subprocess.run(command, cwd=tmp_path / TOP, capture_output=True, text=True, check=True).stdout
    assert checked.count(": OK\n") == len(members) - 1
    hashes = dict(reversed(line.split("  ")) for line in members["MANIFEST.sha256"].decode().splitlines())
    for requirement in members["requirements.lock"].decode().splitlines():
        name, version, found = re.fullmatch(r"([\w-]+)==([\w.]+) --hash=sha256:(\w{64})", requirement).groups()
        assert hashes[f"wheels/{name.replace('-', '_')}-{version}-py3-none-any.whl"] == found


def test_the_appendix_has_the_headings_disk_memory_minutes_and_all_numbers(members):
    text = members["README.md"].decode()
    headings = re.findall(r"^##+ (A\.[\d.]+) (.+)$", text, re.MULTILINE)
    assert [name for _, name in headings] == [
        "Abstract", "Artifact check-list (meta-information)", "Description", "How to access", "Hardware dependencies",
        "Software dependencies", "Data sets", "Installation", "Experiment workflow",
        "Evaluation and expected results", "Experiment customization", "Notes",
    ]  # fmt: skip
    for field in ("disk space required", "time is needed to prepare", "time is needed to complete"):
        assert re.search(rf"^- \*\*How much {field}[^*]*\(approximately\)\?\*\* .*\d", text, re.MULTILINE), field
    documents = [json.loads(members[f"results/{number}.json"]) for number in (1, 2)]
    memory = max(document["host"]["peak_rss_bytes"] for document in documents)
    assert f"{memory / 1e6:,.0f} MB of memory" in text
    rows = list(csv.DictReader(io.StringIO(members["results/numbers.csv"].decode())))
    assert [float(row["throughput_ops_per_us"]) for row in rows] == [of["throughput_ops_per_us"] for of in documents]
    for row in rows:
        shown = f"{float(row['throughput_ops_per_us']):.4g}"
        assert f"| btree | {row['design']} | {shown} |" in text
    assert "throughput ops/us, IPC, pmem bytes written, p99 ns" in text


def test_the_script_can_be_executed_and_is_a_shell_script(author, tmp_path):
    with tarfile.open(author.packed) as archive:
        script = archive.getmember(f"{TOP}/run.sh")
        (tmp_path / "run.sh").write_bytes(archive.extractfile(script).read())
    assert script.mode & stat.S_IXUSR
    subprocess.run(["sh", "-n", tmp_path / "run.sh"], check=True)
    assert "@" not in (tmp_path / "run.sh").read_text().replace('"$@"', "")


def test_equal_requests_give_equal_bytes(author, tmp_path):
    path = tmp_path / "again.tar.gz"
    assert author.artifact(author.file, "--output", path, cwd=tmp_path).returncode == 0
    assert path.read_bytes() == author.packed.read_bytes()
    with tarfile.open(path) as archive:
        infos = archive.getmembers()
    assert {(of.uid, of.gid, of.uname, of.gname) for of in infos} == {(0, 0, "", "")}
    assert len({of.mtime for of in infos}) == 1
    names = [of.name for of in infos]
    assert sorted(names[:-1]) == names[:-1]
    assert all(name.startswith(f"{TOP}/") and ".." not in name for name in names)


def test_nothing_private_is_in_it(author):
    contents = list(all_contents(author.packed))
    assert len(contents) > 100
    own_home = str(Path.home()).encode() + b"/"
    for name, content in contents:
        for mark in (*author.marks, str(author.home.parent).encode()):
            assert mark not in content, (name, mark)
        if ".whl" not in name and own_home != b"//":
            assert own_home not in content, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("marked-person", "your user name"),
        ("marked-host", "the name of this computer"),
        ("marked-value-of-a-variable", "the environment variable MARKED"),
        ("HOME/traces", "your home folder"),
    ],
)
def test_a_machine_file_with_a_private_text_is_refused_with_its_line(author, refuses, text, words):
    machine = author.study / "other.toml"
    text = text.replace("HOME", str(author.home))
    machine.write_text(f"{(PACKAGE / 'machines' / 'tiny.toml').read_text()}\n# from {text}\n")
    line = len(machine.read_text().splitlines())
    study = author.study / "other-study.toml"
    study.write_text(author.file.read_text().replace("own-machine", "other"))
    assert author.run("sweep", study, "--store", author.store).returncode == 0
    refuses(author.artifact(study), 2, f"other.toml, line {line},", words)


def test_texts_of_the_study_are_searched_and_names_of_durasim_are_not(author, refuses):
    study = author.study / "named.toml"
    study.write_text(author.file.read_text().replace("small study", "of marked-person"))
    refuses(author.artifact(study), 2, "name of the study file contains 'marked-person', your user name")
    with author.at_work() as env, pytest.MonkeyPatch.context() as patch:
        for name, value in {**env, "USER": "hercules", "LOGNAME": "root", "MARKED": "hercules"}.items():
            patch.setenv(name, value)
        texts = private.private_texts(frozenset({"hercules"}))
    assert texts.in_text("hercules on root") is None
    assert texts.in_text("marked-host.") == ("marked-host", "the name of this computer")
    assert texts.in_text("unmarked-host") is None


def test_programs_are_searched_for_paths_and_secrets_and_not_for_words(monkeypatch):
    monkeypatch.setenv("HOME", "/home/max")
    monkeypatch.setenv("USER", "max")
    monkeypatch.setenv("TOKEN", "0123456789abcdef")
    monkeypatch.setenv("TZDIR", "/usr/share/zoneinfo")
    texts = private.private_texts(frozenset())
    for data in (b"\0/home/max/a.cpp\0", b"/max/a.cpp", b"/scratch/max\0", b'"/data/max"', b"key 0123456789abcdef\0"):
        assert texts.in_file(data) is not None, data
    for data in (b"max\0", b"std::max", b"\0/max\0", b"/home/maximal", b"/usr/share/zoneinfo", b"/scratch/maxima"):
        assert texts.in_file(data) is None, data
    assert texts.in_text("by max") == ("max", "your user name")


@pytest.fixture
def refuses():
    def check(done, code, *words):
        assert done.returncode == code, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        for word in words:
            assert word in done.stderr
        return done.stderr

    return check


def test_points_that_are_not_stored_are_refused_with_the_command(author, refuses):
    study = author.study / "more.toml"
    study.write_text(author.file.read_text().replace("ops = 5", "ops = 6"))
    sentence = refuses(author.artifact("more.toml"), 2, "store: 2 of 2 points are not in the store")
    assert f"`durasim sweep more.toml --store {author.store}`" in sentence


@pytest.mark.parametrize(
    ("subject", "options", "code", "words"),
    [
        ("hercles", [], 2, ["paper", "hercles", "did you mean 'hercules'"]),
        ("missing.toml", [], 4, ["missing.toml"]),
        ("study.toml", ["--store", "missing.sqlite"], 4, ["missing.sqlite", "there is no store of results"]),
        ("hercles", ["--store", "missing.sqlite"], 2, ["paper", "hercles"]),
        ("study.toml", ["--figure", "Fig5"], 2, ["figure", "is for a paper"]),
        ("study.toml", ["--scale", "quick"], 2, ["scale", "is for a paper"]),
        ("hercules", ["--figure", "Fig99"], 2, ["figure", "Fig99"]),
        ("hercules", ["--scale", "small"], 2, ["scale", "small", "quick"]),
        ("study.toml", ["--output", "missing/a.tar.gz"], 4, ["missing/a.tar.gz"]),
        ("study.toml", ["--output", "/proc/a.tar.gz"], 4, ["/proc/a.tar.gz"]),
        ("study.toml", ["--output", "."], 4, ["is a folder"]),
        ("study.toml", ["--wheel", "missing.whl"], 4, ["missing.whl"]),
        ("study.toml", ["--wheel", "study.toml"], 2, ["wheel", "study.toml is no wheel"]),
        ("study.toml", ["--wheels", "missing"], 4, ["missing", "no such folder of wheels"]),
        ("study.toml", ["--wheels", "."], 2, ["wheels", "lacks a wheel that durasim needs", "made-up-library"]),
    ],
)
def test_bad_input_is_refused_with_one_sentence(author, refuses, subject, options, code, words):
    before = sorted(author.study.iterdir())
    refuses(author.artifact(subject, *options), code, *words)
    assert sorted(author.study.iterdir()) == before


@pytest.mark.usefixtures("small_paper")
def test_a_paper_without_stored_runs_is_refused_with_the_command(author, refuses):
    sentence = refuses(author.artifact("small", "--figure", "Fig1"), 2, "4 of 4 points are not in the store")
    assert f"`durasim reproduce small --figure Fig1 --store {author.store}`" in sentence


def test_a_wheel_of_another_build_or_with_other_files_is_refused(author, refuses, tmp_path):
    other = wheel_of_durasim(tmp_path / "build", build="0" * 32)
    refuses(author.artifact(author.file, "--wheel", other), 2, "wheel", "is not of the build", "make wheel")
    other = wheel_of_durasim(tmp_path / "file", **{"api.py": b"changed = True\n"})
    refuses(author.artifact(author.file, "--wheel", other), 2, "wheel", "has another durasim/api.py", "make wheel")
    other = wheel_of_durasim(tmp_path / "more", **{"prebuilt/x": str(author.home).encode()})
    refuses(author.artifact(author.file, "--wheel", other), 2, "durasim/prebuilt/x", "your home folder", "make wheel")


def test_without_a_wheel_one_sentence_asks_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(wheels, "_CHECKOUT", tmp_path)
    with pytest.raises(ds.ConfigError, match=r"wheel: .*--wheel FILE .the file from which durasim was installed"):
        wheels.wheel_of_durasim(None)
    (tmp_path / "Cargo.toml").touch()
    with pytest.raises(ds.ConfigError, match=r"wheel: .*`make wheel` builds it in dist/"):
        wheels.wheel_of_durasim(None)
    (tmp_path / "dist").mkdir()
    first, second = (tmp_path / "dist" / f"durasim-{number}-py3-none-any.whl" for number in (1, 2))
    first.touch()
    assert wheels.wheel_of_durasim(None) == first
    second.touch()
    with pytest.raises(ds.ConfigError, match=r"wheel: .*dist has 2 wheels: choose one"):
        wheels.wheel_of_durasim(None)


def test_designs_of_the_user_are_refused(monkeypatch):
    monkeypatch.setenv("DURASIM_CORE", "own.so")
    with pytest.raises(ds.ConfigError, match="artifact: packs designs of durasim alone"):
        ds.artifact("hercules")


def test_bisected_values_and_frontiers_are_among_the_numbers(author, tmp_path):
    study = tmp_path / "bisected.toml"
    study.write_text(
        'name = "bisected"\ndesigns = ["hercules"]\nworkloads = ["btree"]\nmachine = "tiny"\nops = 5\n'
        'args = { populate = 8 }\nrefine = { metric = "ipc", threshold = 0.999, of = "first" }\n'
        'pareto = { maximize = ["ipc"], minimize = ["pmem_write_total"] }\n'
        '[axes]\n"llc.latency_cycles" = { from = 20, to = 36 }\n'
    )
    swept = author.run("sweep", study, "--store", author.store, "--json", tmp_path / "swept.json")
    assert swept.returncode == 0, swept.stderr
    (refined,) = ds.load(tmp_path / "swept.json").refined
    assert author.artifact(study, "--output", tmp_path / "bisected.tar.gz").returncode == 0
    text = members_of(tmp_path / "bisected.tar.gz")["bisected-artifact/README.md"].decode().replace("\\", "")
    assert re.search(r"^\| btree \| hercules \| 20 \|.*\| yes \|$", text, re.MULTILINE)
    table = text.split("**Claim 2. Values of llc.latency_cycles that enclose the threshold**\n")[1]
    ends = sorted((refined.low, refined.high), reverse=refined.metric_low >= refined.threshold)
    assert f"| btree | hercules | {ends[0]} | {ends[1]} |" in table


PAPER = """
title = "A small paper"
citation = "Author, 2020"
aliases = ["small"]
figures = ["figure-1"]

[names.designs]
Ours = "hercules"
Ideal = "opt"

[names.workloads]
Tree = "btree"

[[runs]]
name = "main"
designs = ["opt", "hercules"]
workloads = ["btree"]
machine = "tiny"
ops = 4
seeds = 2
args = { populate = 8 }
"""
FIGURE = """
place = "Fig1"
title = "Throughput"

[values]
ours = { runs = "main", metric = "throughput_ops_per_us", design = "$design", workload = "$workload" }
baseline = { runs = "main", metric = "throughput_ops_per_us", design = "$baseline", workload = "$workload" }

[measures.relative]
formula = "percent(geomean(ours / baseline))"

[[published]]
metric = "relative"
design = "Ours"
workload = "Tree"
baseline = "Ideal"
value = "60"
unit = "%"
quote = "sixty percent"
class = "measured"
relation = "share"
"""


@pytest.fixture
def small_paper(tmp_path, monkeypatch):
    """A folder of papers with one small paper."""
    folder = tmp_path / "papers" / "small-2020"
    folder.mkdir(parents=True)
    for name, text in {"paper": PAPER, "figure-1": FIGURE}.items():
        (folder / f"{name}.toml").write_text(text)
    monkeypatch.setattr(paper_files, "papers_folder", lambda: folder.parent)
    monkeypatch.setattr("durasim.papers.recorded.papers_folder", lambda: folder.parent)
    paper_files.paper_names.cache_clear()
    yield folder
    paper_files.paper_names.cache_clear()


@pytest.mark.usefixtures("small_paper")
def test_an_artifact_of_a_paper_has_its_published_numbers_beside_ours(author, tmp_path):
    store = ["--store", tmp_path / "paper.sqlite"]
    reproduced = author.run("reproduce", "small", *store, "--json", tmp_path / "r.json", cwd=tmp_path)
    assert reproduced.returncode == 0, reproduced.stderr
    done = author.artifact("small", *store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 simulations, 1 program, 2 wheels, 1 row of numbers" in done.stdout
    members = members_of(tmp_path / "small-2020-artifact.tar.gz")
    text = members["small-2020-artifact/README.md"].decode()
    (row,) = json.loads((tmp_path / "r.json").read_text())["rows"]
    published = f"| Fig1 | relative | Ours | Ideal | Tree | 60 % | {row['text']} | {row['verdict']} |"
    assert published in text.replace("\\", "")
    assert "venv/bin/durasim reproduce small --store rerun/results.sqlite" in text
    assert "small-2020-artifact/study.toml" not in members


def request(**changed):
    origin = {"durasim_build": "b", "scale": "paper", "workload_args": {}, "guest_compiler": "ziglang 1"}
    return {"design": "opt", "machine": "tiny", "workload": "btree", "elf_name": "btree", "origin": origin, **changed}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of an author with the home `HOME` in the folder of the test."""
    monkeypatch.setenv("HOME", str(tmp_path / "HOME"))
    monkeypatch.setenv("USER", "marked-person")
    (tmp_path / "HOME").mkdir()
    return PackedFiles(private.private_texts(frozenset()))


def test_the_source_of_an_own_workload_is_packed_with_its_table(tmp_path, files):
    source = tmp_path / "HOME" / "mine.cpp"
    source.write_text("int main() {}\n")
    source.with_suffix(".toml").write_text('interface = "transactions"\n')
    elf = tmp_path / "mine-markers-1"
    elf.write_bytes(b"\x7fELF")
    placed = files.request(request(elf=str(elf), workload=str(source)))
    assert re.fullmatch(r"sources/[0-9a-f]{16}/mine.cpp", placed["workload"])
    folder = str(Path(placed["workload"]).parent)
    assert sorted(files.members) == [placed["elf"], f"{folder}/mine.cpp", f"{folder}/mine.toml"]
    document = {"workload": str(source), "provenance": {"guest_compiler": "ziglang 1"}}
    assert files.document(document)["workload"] == placed["workload"]
    source.write_text("// by marked-person\n")
    with pytest.raises(ds.ConfigError, match=r"mine.cpp, line 1, contains 'marked-person', your user name"):
        PackedFiles(private.private_texts(frozenset())).request(request(elf=str(elf), workload=str(source)))


def test_an_own_program_that_sees_a_private_path_is_refused(tmp_path, files):
    elf = tmp_path / "HOME" / "prog"
    elf.write_bytes(b"\x7fELF")
    own = request(elf=str(elf), elf_name="prog", exe_link=str(elf), workload="prog")
    with pytest.raises(ds.ConfigError, match=r"programs: .*the program sees this path.*your home folder: move it"):
        files.request(own)
    elsewhere = files.request({**own, "exe_link": "/data/prog"})
    assert (elsewhere["exe_link"], elsewhere["workload"]) == ("/data/prog", "prog")


def test_a_program_that_contains_the_home_folder_is_refused(tmp_path, files):
    elf = tmp_path / "prog"
    elf.write_bytes(b"\x7fELF\0" + str(tmp_path / "HOME" / "a.cpp").encode() + b"\0")
    with pytest.raises(ds.ConfigError, match=r"artifact: .*prog contains '.*HOME', your home folder"):
        files.request(request(elf=str(elf)))


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        (None, None),
        ("ziglang 0.17.0", "ziglang 0.17.0"),
        ("/home/x/bin/riscv64-linux-gnu-g++", "riscv64-linux-gnu-g++"),
        ("/home/x/bin/g++ -mcmodel=medany (from DURASIM_CXX)", "named by DURASIM_CXX"),
    ],
)
def test_the_compiler_is_named_without_its_folder_and_without_the_environment(files, tmp_path, description, shown):
    elf = tmp_path / "prog"
    elf.touch()
    given = request(elf=str(elf))
    given["origin"] = given["origin"] | {"guest_compiler": description}
    assert files.request(given)["origin"]["guest_compiler"] == shown
    document = {"workload": "btree", "provenance": {"guest_compiler": description}}
    assert files.document(document)["provenance"]["guest_compiler"] == shown


def test_folders_are_packed_with_their_links_and_rights(tmp_path, files):
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "data").write_bytes(b"data")
    (root / "inner" / "data").chmod(0o640)
    (root / "link").symlink_to("inner/data")
    elf, snapshot = tmp_path / "prog", tmp_path / "s.snapshot"
    elf.write_bytes(b"\x7fELF")
    snapshot.write_bytes(b"snapshot")
    placed = files.request({**request(elf=str(elf)), "root": str(root), "from": str(snapshot)})
    target = tmp_path / "a.tar.gz"
    write(str(target), "top", files.members.values())
    with tarfile.open(target) as archive:
        archive.extractall(tmp_path / "out", filter="tar")
    top = tmp_path / "out" / "top"
    assert (top / placed["from"]).read_bytes() == b"snapshot"
    assert (top / placed["root"] / "link").read_bytes() == b"data"
    assert (top / placed["root"] / "inner" / "data").stat().st_mode & 0o777 == 0o640
    (root / "a\\b").touch()
    with pytest.raises(ds.ConfigError, match="has a name that cannot be packed"):
        PackedFiles(private.private_texts(frozenset())).request({**request(elf=str(elf)), "root": str(root)})


def test_an_archive_that_cannot_be_finished_leaves_no_file(tmp_path):
    target = tmp_path / "a.tar.gz"
    with pytest.raises(ds.HostIoError, match="missing"):
        write(str(target), "top", [Member("one", b"1"), Member("two", tmp_path / "missing")])
    assert list(tmp_path.iterdir()) == []


def test_every_field_of_a_request_with_a_path_has_a_folder():
    assert set(packed.FOLDERS) == {*contents.FILES, contents.FOLDER}
    assert len(set(packed.FOLDERS.values())) == len(packed.FOLDERS)
