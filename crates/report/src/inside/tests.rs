#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use lastbyte_capture::{ConnectionId, Fate, Trigger};
use lastbyte_link::Time;

use super::*;
use crate::layout::Screen;
use crate::tests::errors;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn transmission(sender: Side, sent: u64, offset: u64, bytes: usize) -> Transmission {
    Transmission {
        sender,
        sent: ms(sent),
        arrived: Some(ms(sent + 20)),
        fate: Fate::Carried,
        flags: Vec::new(),
        offset,
        payload: vec![0; bytes],
        acknowledges: 0,
        is_selective: false,
        again: None,
        in_flight: bytes as u64,
    }
}

fn lost(sender: Side, sent: u64, offset: u64, bytes: usize) -> Transmission {
    Transmission {
        arrived: None,
        fate: Fate::Lost,
        ..transmission(sender, sent, offset, bytes)
    }
}

/// A handshake of one flight each, and a response, of which `changed` has the packets.
fn inside(changed: impl FnOnce(&mut Vec<Transmission>)) -> Inside {
    use Side::{Client, Server};
    let acknowledging = |acknowledges, sent: Transmission| Transmission {
        acknowledges,
        ..sent
    };
    let syn = |sent| Transmission {
        flags: vec![Flag::Syn],
        ..sent
    };
    let mut transmissions = vec![
        syn(transmission(Client, 0, 0, 0)),
        syn(transmission(Server, 20, 0, 0)),
        transmission(Client, 40, 0, 300),
        acknowledging(300, transmission(Server, 60, 0, 1400)),
        acknowledging(300, transmission(Server, 60, 1400, 1400)),
        acknowledging(2800, transmission(Client, 80, 300, 180)),
        acknowledging(480, transmission(Server, 100, 2800, 1200)),
    ];
    changed(&mut transmissions);
    let span = |sender, start, end, what: &str| Span {
        sender,
        start,
        end,
        what: what.to_owned(),
    };
    Inside {
        connection: Connection {
            id: ConnectionId {
                client: ([198, 18, 0, 1].into(), 20_000),
                server: ([198, 19, 0, 1].into(), 443),
            },
            comment: "connection 0".to_owned(),
            begin: Time(0),
            transmissions,
        },
        name: "classical, RTT 40ms, connection 0".to_owned(),
        spans: vec![
            span(Client, 5, 300, "ClientHello"),
            span(Client, 305, 360, FINISHED),
            span(Client, 360, 480, "request"),
            span(Server, 5, 160, "ServerHello"),
            span(Server, 200, 2600, "Certificate"),
            span(Server, 2740, 2800, FINISHED),
            span(Server, 2800, 4000, "response"),
        ],
        asked: Some(Conditions {
            window: 10,
            mss: 1400,
            rtt: ms(40),
            think: ms(0),
            timeout: ms(10_000),
            last: Last::Response,
            end: Some(4000),
            arithmetic: Ok(ms(120)),
        }),
        messages: Messages::Read,
        attempt: Attempt::Only,
        extent: Extent::Whole,
    }
}

fn asked(inside: &mut Inside) -> &mut Conditions {
    inside.asked.as_mut().unwrap()
}

fn again(sent: u64, offset: u64, trigger: Trigger) -> Transmission {
    Transmission {
        again: Some(trigger),
        ..transmission(Side::Server, sent, offset, 1400)
    }
}

#[test]
fn where_nothing_is_lost_round_trips_are_counted() {
    assert_eq!(
        story(&inside(|_| ())),
        [
            "Nothing was lost: 120.0 ms after connect(), which is 3 round trips of 40.0 ms: 1 for TCP, \
             1 for the handshake (2800 bytes of the server's) and 1 for the response (1 flight)."
        ]
    );
}

#[test]
fn without_secrets_nobody_knows_which_byte_is_the_last() {
    let sealed = |changed: fn(&mut Vec<Transmission>)| Inside {
        messages: Messages::Sealed,
        asked: None,
        ..inside(changed)
    };
    let known = "The file has no TLS secrets of it, so which bytes are the response's is not known";
    let whole = sealed(|_| ());
    let last = "the last of the 4000 bytes that the server sent came 120.0 ms after connect().";
    assert_eq!(
        story(&whole),
        [format!("Nothing was lost. {known}: {last}")]
    );
    assert_eq!(whole.slowness(), Some(ms(120)));
    let mended = sealed(|packets| {
        packets[6] = lost(Side::Server, 100, 2800, 1200);
        packets.push(Transmission {
            payload: vec![0; 1200],
            ..again(300, 2800, Trigger::Timeout(ms(200)))
        });
    });
    let told = story(&mended);
    assert!(told[1].starts_with(known), "{told:?}");
    assert!(told[1].contains("320.0 ms"), "{told:?}");
    let never = sealed(|packets| packets[6] = lost(Side::Server, 100, 2800, 1200));
    let told = story(&never).join(" ");
    assert!(!told.contains("last byte"), "{told}");
}

#[test]
fn a_lost_packet_is_named_with_how_it_was_recovered_and_what_that_took() {
    let story_of = |trigger, at| {
        story(&inside(|packets| {
            packets[4] = lost(Side::Server, 60, 1400, 1400);
            packets.insert(5, again(at, 1400, trigger));
            for sent in &mut packets[6..] {
                sent.sent += ms(at - 60);
                sent.arrived = sent.arrived.map(|arrived| arrived + ms(at - 60));
            }
        }))
    };
    assert_eq!(
        story_of(Trigger::FastRetransmit, 100),
        [
            "One packet was lost: bytes 1401 to 2800 of the server's (Certificate to Finished), sent by the server at \
             60.0 ms. Acknowledgements told of the gap, and it was sent again 40.0 ms later (fast retransmit).",
            "The last byte came after 160.0 ms: 40.0 ms later than over a link that loses nothing (120.0 ms, by \
             arithmetic)."
        ]
    );
    let timeout = story_of(Trigger::Timeout(ms(240)), 300);
    assert!(
        timeout[0].ends_with(
            "Since nothing came for 240.0 ms, it was sent again (retransmission timeout), 240.0 ms after the first time."
        ),
        "{timeout:?}"
    );
    let probe = story_of(Trigger::LossProbe(ms(90)), 150);
    assert!(
        probe[0].ends_with(
            "so TCP sent its last packet again (tail loss probe), 90.0 ms after the first time."
        ),
        "{probe:?}"
    );
}

#[test]
fn what_is_lost_again_and_what_matters_not_are_told() {
    let inside = inside(|packets| {
        packets[3] = lost(Side::Server, 60, 0, 1400);
        packets.push(Transmission {
            again: Some(Trigger::Timeout(ms(240))),
            ..lost(Side::Server, 300, 0, 1400)
        });
        packets.push(again(800, 0, Trigger::Timeout(ms(500))));
        packets.push(lost(Side::Client, 130, 480, 0));
    });
    let story = story(&inside);
    assert!(
        story[0]
            .starts_with("2 packets were lost. The one that cost most was lost: bytes 1 to 1400"),
        "{story:?}"
    );
    assert!(
        story[0].ends_with("That was lost as well; 1 time more, and what arrived was sent 740.0 ms after the first."),
        "{story:?}"
    );
    assert!(
        story[2].starts_with("1 acknowledgement was lost besides."),
        "{story:?}"
    );
}

#[test]
fn what_never_came_is_told_by_what_was_first_missing() {
    let timeout = |sent| Transmission {
        again: Some(Trigger::Timeout(ms(240))),
        ..lost(Side::Server, sent, 0, 1400)
    };
    let mut inside = inside(|packets| {
        packets[3] = lost(Side::Server, 60, 0, 1400);
        packets.truncate(5);
        packets.extend([300, 540, 1020].map(timeout));
    });
    // All that the server sent may be there, and yet be no response.
    asked(&mut inside).end = None;
    assert_eq!(inside.end(), None);
    assert_eq!(
        story(&inside),
        [
            "4 packets were lost. The one that all waited for was lost: bytes 1 to 1400 of the server's (ServerHello to \
             Certificate), first sent by the server at 60.0 ms. It never arrived: it was sent again 3 times, the last \
             time at 1020.0 ms.",
            "Its last byte never came in time."
        ]
    );
}

#[test]
fn a_handshake_alone_is_no_last_byte() {
    let mut inside = inside(|packets| packets.truncate(6));
    asked(&mut inside).end = None;
    assert_eq!(
        story(&inside),
        ["Nothing was lost. Its last byte never came in time."]
    );
    // Nor is what came when nobody waited any more.
    asked(&mut inside).end = Some(2800);
    assert_eq!(inside.end(), Some(ms(80)));
    asked(&mut inside).timeout = ms(79);
    assert_eq!(inside.end(), None);
}

#[test]
fn a_handshake_whose_finished_nobody_got_is_none() {
    let finished = |arrives: bool| {
        let mut inside = inside(|packets| {
            packets.truncate(5);
            packets.push(lost(Side::Client, 80, 300, 60));
            packets.push(Transmission {
                again: Some(Trigger::LossProbe(ms(100))),
                ..if arrives {
                    transmission(Side::Client, 180, 300, 60)
                } else {
                    lost(Side::Client, 180, 300, 60)
                }
            });
        });
        let asked = asked(&mut inside);
        asked.last = Last::Handshake;
        asked.end = None;
        // Nobody waits for what the server learns later, nor for less than is told.
        asked.arithmetic = Ok(ms(80) - Duration::from_nanos(300));
        inside
    };
    // It is no number where arithmetic does not go so far.
    let mut unmodelled = finished(true);
    asked(&mut unmodelled).arithmetic = Err(lastbyte_flights::Reason::LossProbe);
    let told = &story(&unmodelled)[1];
    assert!(
        told.contains("is not by arithmetic: the link is so slow"),
        "{told}"
    );
    let never = finished(false);
    assert_eq!((never.end(), never.slowness()), (None, Some(Duration::MAX)));
    assert_eq!(
        story(&never),
        [
            "2 packets were lost. The one that all waited for was lost: bytes 301 to 360 of the client's (Finished), first sent \
             by the client at 80.0 ms. It never arrived: it was sent again 1 time, the last time at 180.0 ms.",
            "The client's Finished never reached the server in time."
        ]
    );
    let late = finished(true);
    assert_eq!(late.end(), Some(ms(80)));
    assert!(
        story(&late)[1].starts_with("The handshake was done after 80.0 ms, and not later than"),
        "{:?}",
        story(&late)
    );
}

#[test]
fn a_gap_that_only_a_probe_told_of() {
    let told = story(&inside(|packets| {
        packets[3] = lost(Side::Server, 60, 0, 1400);
        packets[4] = lost(Side::Server, 60, 1400, 1400);
        packets.splice(
            5..,
            [
                again(200, 1400, Trigger::LossProbe(ms(120))),
                again(240, 0, Trigger::FastRetransmit),
                transmission(Side::Server, 260, 2800, 1200),
            ],
        );
    }));
    assert!(
        told[0].ends_with(
            "Nothing came for 120.0 ms, so TCP sent its last packet again (tail loss probe); what acknowledged that told of \
             the gap, and it was sent again 180.0 ms after the first time (fast retransmit)."
        ),
        "{told:?}"
    );
}

#[test]
fn a_retransmission_that_was_lost_needlessly_is_nobodys_fault() {
    let told = story(&inside(|packets| {
        packets[3] = lost(Side::Server, 60, 0, 1400);
        packets.insert(5, again(75, 0, Trigger::FastRetransmit));
        packets.insert(
            6,
            Transmission {
                again: Some(Trigger::FastRetransmit),
                ..lost(Side::Server, 78, 0, 1400)
            },
        );
    }));
    assert!(
        told[0].contains("first sent by the server at 60.0 ms."),
        "{told:?}"
    );
    assert!(
        told[0].ends_with("sent again 15.0 ms later (fast retransmit)."),
        "{told:?}"
    );
}

#[test]
fn an_end_that_is_not_in_the_capture_has_no_time() {
    let mut inside = inside(|packets| packets.truncate(5));
    asked(&mut inside).end = None;
    for (extent, told) in [
        (
            Extent::OutOfRoom(70),
            "Nothing was lost. Its end is not in the capture, which had no room for 70 packets: capture fewer connections.",
        ),
        (
            Extent::Cut,
            "Nothing was lost. Its end is not in the file, which is cut short.",
        ),
    ] {
        inside.extent = extent;
        assert_eq!(story(&inside), [told]);
        assert_eq!(inside.slowness(), None);
    }
}

#[test]
fn what_is_left_of_the_time_has_a_name_only_where_it_is_known() {
    let later = |by: u64| {
        inside(|packets| {
            let last = packets.last_mut().unwrap();
            last.arrived = last.arrived.map(|arrived| arrived + ms(by));
        })
    };
    // Whatever the shortest trip that was seen.
    let mut inside = later(130);
    assert!(story(&inside)[0].ends_with("(1 flight), and 130.0 ms besides."));
    asked(&mut inside).arithmetic = Ok(ms(250));
    assert!(story(&inside)[0].ends_with(", and 130.0 ms in which the link sends what is before."));
    asked(&mut inside).think = ms(100);
    asked(&mut inside).arithmetic = Ok(ms(220));
    assert!(
        story(&inside)[0].ends_with(", and 100.0 ms of think time and 30.0 ms besides."),
        "{:?}",
        story(&inside)
    );
    asked(&mut inside).rtt = ms(80);
    asked(&mut inside).think = ms(0);
    assert!(
        story(&inside)[0].contains("250.0 ms after connect(), which is 3 round trips of 80.0 ms:")
    );
}

#[test]
fn a_retry_takes_a_round_trip_and_no_window() {
    let mut inside = inside(|packets| {
        let mut retry = transmission(Side::Server, 60, 0, 160);
        retry.acknowledges = 300;
        let mut hello = transmission(Side::Client, 62, 300, 0);
        hello.acknowledges = 160;
        packets.splice(3..4, [retry, hello]);
        packets[5] = transmission(Side::Server, 90, 160, 2640);
        for (packet, sent) in [(6, 112), (7, 140)] {
            packets[packet].sent = ms(sent);
            packets[packet].arrived = Some(ms(sent + 20));
        }
    });
    inside.spans[3].what = "HelloRetryRequest".to_owned();
    let told = story(&inside);
    assert!(
        told[0].contains(": 1 for TCP, 1 for the HelloRetryRequest, 1 for the handshake (2640 bytes of the server's)"),
        "{told:?}"
    );
    assert!(!told[0].contains("do not fit"), "{told:?}");
}

#[test]
fn what_was_sent_again_for_nothing_is_told() {
    let told = story(&inside(|packets| {
        packets.insert(5, again(70, 0, Trigger::LossProbe(ms(10))));
    }));
    assert!(
        told[0]
            .starts_with("Nothing was lost, but one packet was sent again without need: 120.0 ms"),
        "{told:?}"
    );
}

#[test]
fn a_handshake_that_failed_is_no_connection_that_ended() {
    let mut inside = inside(|packets| packets.truncate(6));
    inside.attempt = Attempt::Failed {
        because: Some("the client said alert bad_certificate (42)".to_owned()),
        next: Next::Anew,
    };
    assert_eq!((inside.end(), inside.slowness()), (None, None));
    assert_eq!(
        story(&inside),
        [
            "The handshake failed: the client said alert bad_certificate (42). It was made anew, over the connection after \
             this one.",
            "Nothing was lost."
        ]
    );
}

#[test]
fn a_connection_fits_its_terminal() {
    let inside = inside(|packets| packets[4] = lost(Side::Server, 60, 1400, 1400));
    for columns in [60, 80, 100] {
        let text = text(
            &inside,
            Screen {
                columns,
                ..Screen::PLAIN
            },
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= columns),
            "{text}"
        );
    }
    let text = text(
        &inside,
        Screen {
            columns: 80,
            ..Screen::PLAIN
        },
    );
    for told in [
        "One packet was lost: bytes 1401 to 2800",
        "classical, RTT 40ms, connection 0\n",
        "ms client",
        " SYN-ACK ",
        " ✕ Certificate to Finished, 1400 B, lost ",
        " response, 1200 B ",
        "not got acknowledged, in bytes.\n",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let arrow = |what: &str| text.lines().find(|line| line.contains(what)).unwrap();
    assert!(arrow(" ClientHello, 300 B ").contains('>'), "{text}");
    assert!(arrow(" response, 1200 B ").contains('<'), "{text}");
}

#[test]
fn the_document_is_as_its_schema_says() {
    let document = json(&inside(|packets| {
        packets.push(again(300, 0, Trigger::LossProbe(ms(90))));
        packets.push(lost(Side::Client, 130, 480, 0));
    }));
    assert_eq!(errors(&document, SCHEMA), [""; 0]);
    assert_ne!(
        errors(&document.replace("loss probe", "magic"), SCHEMA),
        [""; 0]
    );
}

#[test]
fn the_drawing_is_whole() {
    let drawing = svg(&inside(|packets| {
        packets[4] = lost(Side::Server, 60, 1400, 1400)
    }));
    let parsed = roxmltree::Document::parse(&drawing).unwrap();
    let text: String = parsed
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    for told in [
        "client",
        "Certificate to Finished, lost",
        "last byte",
        "without loss",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!drawing.contains("var("));
}
