import random

import pytest

from holdfast.session_manager import (
    GIVE_UP_S,
    LONGEST_TIMEOUT_S,
    MOST_WAITING,
    WINDOW,
    ClientMessage,
    DataStream,
    MessageError,
    MessageType,
    PayloadType,
)

OUTPUT = PayloadType.OUTPUT
NOW_S = 1_503_434_274.948


def peers():
    return DataStream(sends=MessageType.INPUT), DataStream(sends=MessageType.OUTPUT)


def received(stream, *messages, now_s=NOW_S):
    found = [stream.receive(ClientMessage.decode(raw), now_s=now_s) for raw in messages]
    return [one.payload for each in found for one in each.delivered], [raw for each in found for raw in each.replies]


def test_messages_are_delivered_in_order_whatever_order_they_come_in():
    client, agent = peers()
    sent = [client.send(OUTPUT, b"%d" % number, now_s=NOW_S) for number in range(200)]
    random.Random(7).shuffle(sent)
    assert received(agent, *sent)[0] == [b"%d" % number for number in range(200)]


def test_a_duplicate_is_delivered_once_and_acknowledged_again():
    client, agent = peers()
    raw = client.send(OUTPUT, b"one", now_s=NOW_S)
    assert received(agent, raw)[0] == [b"one"]
    delivered, replies = received(agent, raw, raw)
    assert delivered == []
    assert len(replies) == 2


def test_an_acknowledgement_ends_the_retransmission_of_its_message_alone():
    client, agent = peers()
    first, second = (client.send(OUTPUT, each, now_s=NOW_S) for each in (b"one", b"two"))
    received(client, *received(agent, second)[1])
    assert client.due(now_s=NOW_S + 2) == first
    received(client, *received(agent, first)[1])
    assert client.is_drained
    assert client.due(now_s=NOW_S + 4) is None


def test_a_lost_acknowledgement_costs_a_retransmission_and_no_second_delivery():
    client, agent = peers()
    raw = client.send(OUTPUT, b"one", now_s=NOW_S)
    received(agent, raw)
    assert client.due(now_s=NOW_S + 0.1) is None
    again = client.due(now_s=NOW_S + 0.3)
    assert again == raw
    delivered, replies = received(agent, again)
    assert delivered == []
    received(client, *replies)
    assert client.is_drained


def test_after_a_cut_everything_unacknowledged_is_sent_again_in_order():
    client, agent = peers()
    sent = [client.send(OUTPUT, b"%d" % number, now_s=NOW_S) for number in range(6)]
    arrived, replies = received(agent, *sent[:4])
    received(client, *replies[:2])
    again = client.resumed(now_s=NOW_S + 9)
    assert again == sent[2:]
    arrived += received(agent, *again)[0]
    assert arrived == [b"%d" % number for number in range(6)]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_or_doubled_over_a_line_that_loses_a_third(seed):
    chance = random.Random(seed)
    client, agent = peers()
    arrived, now_s = [], NOW_S
    for number in range(60):
        now_s += 0.02
        raw = client.send(OUTPUT, b"%d" % number, now_s=now_s)
        if chance.random() > 0.3:
            delivered, replies = received(agent, raw, now_s=now_s)
            arrived += delivered
            received(client, *(one for one in replies if chance.random() > 0.3), now_s=now_s)
    while not client.is_drained:
        now_s += LONGEST_TIMEOUT_S + 0.1
        raw = client.due(now_s=now_s)
        if raw is not None and chance.random() > 0.3:
            delivered, replies = received(agent, raw, now_s=now_s)
            arrived += delivered
            received(client, *(one for one in replies if chance.random() > 0.3), now_s=now_s)
    assert arrived == [b"%d" % number for number in range(60)]


def test_a_sender_has_no_room_beyond_its_window():
    client, agent = peers()
    sent = [client.send(OUTPUT, b"x", now_s=NOW_S) for _ in range(WINDOW)]
    assert not client.has_room
    received(client, *received(agent, sent[0])[1])
    assert client.has_room


def test_messages_too_far_ahead_are_not_acknowledged():
    client, agent = peers()
    sent = [client.send(OUTPUT, b"x", now_s=NOW_S) for _ in range(MOST_WAITING + 2)]
    replies = received(agent, *sent[1:])[1]
    assert len(replies) == MOST_WAITING
    assert len(received(agent, sent[0])[0]) == MOST_WAITING + 1


def test_a_paused_stream_is_silent_until_the_peer_is_heard_of():
    client, agent = peers()
    raw = agent.send(OUTPUT, b"one", now_s=NOW_S)
    pause = ClientMessage.decode(raw).__class__(
        message_type="pause_publication", created_ms=1, message_id=ClientMessage.decode(raw).message_id
    )
    agent.receive(pause, now_s=NOW_S)
    assert agent.due(now_s=NOW_S + 5) is None
    received(agent, client.send(OUTPUT, b"key", now_s=NOW_S))
    assert agent.due(now_s=NOW_S + 5) == raw


def test_a_stream_gives_up_after_five_minutes_without_acknowledgement():
    client, _ = peers()
    client.send(OUTPUT, b"x", now_s=NOW_S)
    assert not client.has_given_up(now_s=NOW_S + GIVE_UP_S - 1)
    assert client.has_given_up(now_s=NOW_S + GIVE_UP_S + 1)


def test_a_negative_sequence_number_is_refused_and_the_own_type_is_ignored():
    client, agent = peers()
    raw = ClientMessage.decode(client.send(OUTPUT, b"x", now_s=NOW_S))
    negative = ClientMessage(
        message_type=raw.message_type, created_ms=1, message_id=raw.message_id, sequence_number=-1, payload=b"x"
    )
    with pytest.raises(MessageError, match="sequence number -1"):
        agent.receive(negative, now_s=NOW_S)
    assert client.receive(raw, now_s=NOW_S).delivered == ()


def test_only_the_first_message_of_an_agent_begins_the_sequence():
    client, agent = peers()
    flags = [ClientMessage.decode(one.send(OUTPUT, b"x", now_s=NOW_S)).flags for one in (agent, agent, client)]
    assert flags == [1, 0, 0]
