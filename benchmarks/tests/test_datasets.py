"""The data-set loader, on a small file with every gap and, where it is there, on the real one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import threadkeep
from threadkeep.cli.formats import line_of
from threadkeep_bench.datasets import Gaps, locomo, main

_REAL = Path(os.environ.get("THREADKEEP_TEST_LOCOMO", Path(__file__).parents[3] / "shared/data/locomo5.json"))


def _turn(speaker: str, dia_id: str, text: str, **more: object) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text} | more


SMALL: list[Any] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Béla",
            "session_10_date_time": "12:30 am on 1 March, 2024",
            "session_10": [_turn("Ada", "D10:1", "Good night \N{WAVING HAND SIGN}")],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                _turn("Ada", "D2:1", "Hello"),
                _turn(
                    "Béla",
                    "D2:2",
                    "A dog",
                    img_url=["https://a.org/d.jpg"],
                    blip_caption="a dog",
                    query="dog",
                ),
            ],
            "session_3_date_time": "2:00 pm on 9 May, 2023",
        },
        "qa": [{"question": "Who?", "evidence": ["D2:1"], "category": 1}],
    }
]
"""The shape of the real file: sessions out of order, one with a date but without turns."""

ODD: list[Any] = [
    {
        "sample_id": "conv-2",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Béla",
            "session_1": [_turn("Ada", "D1:1", "No date")],
            "session_2_date_time": "soon",
            "session_2": [
                "not a turn",
                _turn("Ada", "D1:1", "The id again"),
                {"speaker": "Carol", "blip_caption": "a cat"},
            ],
        },
        "qa": [{"question": "Where?", "evidence": ["D9:9"]}],
    },
    {"sample_id": "conv-3", "conversation": {"speaker_a": "Ada", "speaker_b": "Béla"}},
    {"sample_id": "conv-4"},
]


def _lines(samples: list[Any]) -> tuple[list[dict[str, Any]], Gaps]:
    gaps = Gaps()
    return [json.loads(line_of(record)) for record in locomo(samples, gaps)], gaps


def _of(kind: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def test_a_resource_comes_before_its_threads_and_a_thread_before_its_messages() -> None:
    lines, _ = _lines(SMALL)

    assert [(line["kind"], line["id"]) for line in lines] == [
        ("resource", "conv-1"),
        ("thread", "conv-1/session_2"),
        ("message", "conv-1/D2:1"),
        ("message", "conv-1/D2:2"),
        ("thread", "conv-1/session_10"),
        ("message", "conv-1/D10:1"),
    ]


def test_a_line_has_the_models_fields_and_nothing_else() -> None:
    lines, _ = _lines(SMALL)
    models = {"resource": threadkeep.Resource, "thread": threadkeep.Thread, "message": threadkeep.Message}

    for line in lines:
        assert set(line) == {"kind", *models[line["kind"]].__struct_fields__}


def test_a_turn_becomes_a_message_with_role_metadata_and_picture() -> None:
    lines, _ = _lines(SMALL)

    assert _of("message", lines)[1] == {
        "kind": "message",
        "id": "conv-1/D2:2",
        "thread_id": "conv-1/session_2",
        "resource_id": "conv-1",
        "role": "assistant",
        "type": "text",
        "content": {
            "parts": [
                {"type": "text", "text": "A dog"},
                {"type": "image", "caption": "a dog", "urls": ["https://a.org/d.jpg"], "query": "dog"},
            ]
        },
        "metadata": {"speaker": "Béla", "dia_id": "D2:2", "session": 2, "has_image": True},
        "created_at": "2023-05-08T13:56:01Z",
        "seq": 2,
    }


def test_speaker_a_is_the_user() -> None:
    lines, _ = _lines(SMALL)

    assert [line["role"] for line in _of("message", lines)] == ["user", "assistant", "user"]


def test_a_thread_starts_at_its_sessions_time_and_was_updated_with_its_last_message() -> None:
    lines, _ = _lines(SMALL)

    times = [(line["created_at"], line["updated_at"], line["message_count"]) for line in _of("thread", lines)]
    assert times == [
        ("2023-05-08T13:56:00Z", "2023-05-08T13:56:01Z", 2),
        ("2024-03-01T00:30:00Z", "2024-03-01T00:30:00Z", 1),
    ]


def test_a_session_with_a_date_but_without_turns_is_left_out_and_named() -> None:
    lines, gaps = _lines(SMALL)

    assert "conv-1/session_3" not in {line["id"] for line in lines}
    assert gaps.report() == ["1 sessions with a date but without turns, left out: conv-1/session_3"]


def test_turns_without_a_readable_date_follow_the_session_before() -> None:
    lines, _ = _lines(ODD)

    assert [line["created_at"] for line in _of("message", lines)] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:02Z",
        "1970-01-01T00:00:03Z",
    ]


def test_odd_turns_keep_what_they_have() -> None:
    lines, _ = _lines(ODD)
    _, repeated, bare = _of("message", lines)

    assert repeated["id"] == "conv-2/D1:1#2"
    assert (bare["id"], bare["role"], bare["metadata"]["has_image"]) == ("conv-2/D2:3", "unknown", True)
    assert bare["content"] == {"parts": [{"type": "text", "text": ""}, {"type": "image", "caption": "a cat"}]}


def test_every_gap_is_counted_and_named() -> None:
    _, gaps = _lines(ODD)

    assert gaps.report() == [
        "2 sessions without a readable date, put after the one before: conv-2/session_1, conv-2/session_2",
        "1 turns that are no objects, left out: conv-2/D2:1",
        "1 turns whose dia_id repeats, numbered: conv-2/D1:1#2",
        "1 turns without dia_id, named by their place: conv-2/D2:3",
        "1 turns by neither speaker, given the role unknown: conv-2/D2:3",
        "1 turns without text: conv-2/D2:3",
        "1 pictures without an address, caption kept: conv-2/D2:3",
        "1 pieces of evidence that name no turn: conv-2 'D9:9'",
        "1 samples without a single turn, left out: conv-3",
        "1 samples without a conversation, left out: sample 3",
    ]


def test_many_names_of_one_kind_are_cut_after_twenty() -> None:
    gaps = Gaps()
    for number in range(23):
        gaps.add("things", str(number))

    assert gaps.report() == ["23 things: " + ", ".join(map(str, range(20))) + " and 3 more"]


def test_the_command_writes_the_export_and_reports_the_gaps_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps(SMALL), "utf-8")
    arguments = ["locomo", str(tmp_path / "small.json")]

    printed = CliRunner().invoke(main, arguments)
    written = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "out.jsonl")])

    assert (printed.exit_code, written.exit_code) == (0, 0)
    assert written.stdout == ""
    assert (tmp_path / "out.jsonl").read_text("utf-8") == printed.stdout
    assert len(printed.stdout.splitlines()) == 6
    assert printed.stderr.splitlines() == [
        "written: 1 resources, 2 threads, 3 messages",
        "gap: 1 sessions with a date but without turns, left out: conv-1/session_3",
    ]


@pytest.mark.parametrize("raw", [b"", b"hello", b"\xff\xfe\x00", b"[" * 100_000, b"[{]"])
def test_a_file_that_is_not_json_is_refused_in_one_line(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "file.json"
    file.write_bytes(raw)

    result = CliRunner().invoke(main, ["locomo", str(file)])

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: Invalid value for FILE: is not JSON")
    assert result.stderr.count("Error") == 1


@pytest.mark.parametrize(
    "odd",
    ["5", '"x"', "true", '{"a": 1}', "[5]", '[["x"]]', '[{"evidence": 5}, {"evidence": [[]]}]'],
)
@pytest.mark.parametrize("field", ["qa", "speaker_a", "session_1", "session_1_date_time"])
def test_a_field_of_another_type_stops_no_conversion(field: str, odd: str) -> None:
    conversation = {"speaker_a": "Ada", "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "hi"}]}
    sample: dict[str, Any] = {"sample_id": "s", "conversation": conversation}
    (sample if field == "qa" else sample["conversation"])[field] = json.loads(odd)

    records = list(locomo([sample], Gaps()))

    assert [record.id for record in records if isinstance(record, threadkeep.Message)][-1] == "s/D2:1"


def test_a_file_that_is_no_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "object.json").write_text("{}", "utf-8")

    result = CliRunner().invoke(main, ["locomo", str(tmp_path / "object.json")])

    assert result.exit_code == 2
    assert "is not a list of samples" in result.stderr


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("samples", "counts"),
    [
        pytest.param(SMALL, (1, 2, 3), id="small"),
        pytest.param(ODD, (1, 2, 3), id="odd"),
        # Not shipped with this repository; what it is made of is in SMALL and ODD too.
        *(
            [pytest.param(json.loads(_REAL.read_text("utf-8")), (5, 128, 2760), id="real")]
            if _REAL.exists()
            else []
        ),
    ],
)
async def test_all_of_it_can_be_stored_in_its_order_and_ids_and_seq_never_repeat(
    samples: list[Any], counts: tuple[int, int, int]
) -> None:
    records = list(locomo(samples, Gaps()))
    resources = [record for record in records if isinstance(record, threadkeep.Resource)]
    threads = [record for record in records if isinstance(record, threadkeep.Thread)]
    messages = [record for record in records if isinstance(record, threadkeep.Message)]
    assert (len(resources), len(threads), len(messages)) == counts
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))

    async with threadkeep.open("memory:") as store:
        for resource in resources:
            await store.save_resource(resource)
        for thread in threads:
            await store.save_thread(thread)
        assert await store.save_messages(messages) == messages
        for thread in threads:
            assert await store.save_thread(thread) == thread
