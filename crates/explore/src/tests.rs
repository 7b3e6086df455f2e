#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

fn asked(what: What) -> Question {
    let index = What::ALL.iter().position(|known| *known == what).unwrap();
    Question {
        what: (index + 1) as f64,
        ..Question::default()
    }
}

/// A number of an answer by its name.
fn named(answer: &[f64], names: &[&str], name: &str) -> f64 {
    answer[names.iter().position(|known| *known == name).unwrap()]
}

fn told(question: &Question, name: &str) -> f64 {
    named(&answer(&question.numbers()), &CONNECTION, name)
}

#[test]
fn a_question_is_as_its_numbers_have_it() {
    let mut question = asked(What::Difference);
    question.network.mss = 1200.0;
    question.arms[1].client_finish = 81.0;
    question.sweep.to = 3.0;
    assert_eq!(Question::of(&question.numbers()), question);
    let names = layout();
    let counted = |name| {
        names
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap()
            .1
            .len()
    };
    let expected = 1 + counted("network") + 2 * counted("arm") + counted("sweep");
    assert_eq!(question.numbers().len(), expected);
}

#[test]
fn a_connection_is_told_to_the_packet() {
    let mut question = asked(What::Connection);
    question.arms[0].certificate = 15_000.0;
    let found = answer(&question.numbers());
    let named = |name| named(&found, &CONNECTION, name);
    assert_eq!(named("connect"), 35.0);
    assert_eq!(named("handshake"), 105.0);
    assert_eq!(named("first"), -1.0);
    assert_eq!(named("last"), 105.0);
    // 6 of change_cipher_spec, and the records of five messages.
    let sent = 6 + 5 + 155 + 22 + 6 + 22 + 15_000 + 22 + 79 + 22 + 52;
    assert_eq!(named("sent"), f64::from(sent));
    assert_eq!(named("segments"), 11.0);
    assert_eq!(named("serverFlights"), 2.0);
    // Ten segments hold 14480.
    assert_eq!(named("below"), f64::from(14_480 - (sent - 15_000)));
    assert_eq!(named("window"), 11.0);
    assert_eq!(named("budget"), 14_480.0);
    let (flights, packets) = (named("flights") as usize, named("packets") as usize);
    let rows = &found[CONNECTION.len()..];
    assert_eq!(rows.len(), flights * FLIGHT.len() + packets * PACKET.len());
    let packets = rows[flights * FLIGHT.len()..].chunks(PACKET.len());
    let of_server = packets.filter(|packet| packet[0] == 1.0 && packet[1] == 1.0);
    let payload: f64 = of_server.map(|packet| packet[5]).sum();
    assert_eq!(payload, named("sent"));
}

#[test]
fn a_connection_says_how_far_it_goes() {
    let mut question = asked(What::Connection);
    question.network.payload = 12_000.0;
    assert_eq!(
        [told(&question, "until"), told(&question, "reason")],
        [-1.0; 2]
    );
    question.network.rtt = 1.0;
    question.network.rate = 1.0;
    assert_eq!(told(&question, "reason"), 1.0);
    let until = told(&question, "until");
    assert!(until > told(&question, "connect") && until < told(&question, "last"));
}

/// What a site's server does besides: each of it costs what the arithmetic of flights says, and is told in its place.
#[test]
fn what_a_server_does_besides_has_its_segments() {
    let mut question = asked(What::Connection);
    question.network.payload = 12_000.0;
    let usual = question;
    assert_eq!(told(&usual, "first"), 105.0);
    let sent = told(&usual, "sent");
    assert_eq!(told(&usual, "before"), sent);

    // A hello more is a round trip more, and has the change_cipher_spec.
    question.arms[0].hello_retry_request = 99.0;
    question.arms[0].second_client_hello = 300.0;
    assert_eq!(told(&question, "first"), 140.0);
    assert_eq!(told(&question, "retry"), 99.0);
    assert_eq!(told(&question, "sent"), sent - 6.0);
    assert_eq!(told(&question, "before"), sent - 6.0 + 99.0);
    assert_eq!(told(&question, "serverFlights"), 2.0);

    // All of the record has to be there, which is nine segments, and tickets have two of a window of ten.
    let mut question = usual;
    question.network.response.record = 16_384.0;
    question.network.initcwnd = 9.0;
    assert_eq!(told(&question, "first"), 105.0);
    question.network.tickets.wire = 510.0;
    question.network.tickets.writes[..2].fill(255.0);
    assert_eq!(told(&question, "first"), 140.0);
    assert_eq!(told(&question, "last"), 140.0);
    assert_eq!(told(&question, "before"), sent + 510.0);
    assert_eq!(told(&question, "responseFlights"), 2.0);

    // Writes end with segments that are not full.
    let mut question = usual;
    assert_eq!(told(&question, "budget"), 14_480.0);
    question.arms[0].server_writes[0] = 161.0;
    assert_eq!(told(&question, "budget"), 161.0 + 9.0 * 1448.0);
    question.arms[0].server_writes[0] = 1e5;
    assert_eq!(told(&question, "budget"), 14_480.0);
}

#[test]
fn edges_are_those_of_the_staircase() {
    let mut question = asked(What::Staircase);
    question.network.payload = 1000.0;
    question.sweep.to = 100_000.0;
    let steps = answer(&question.numbers());
    let rows: Vec<&[f64]> = steps.chunks(STEP.len()).collect();
    let jumps: Vec<_> = rows
        .windows(2)
        .filter(|pair| pair[0][1] != pair[1][1])
        .collect();
    assert_eq!(jumps.len(), 2);
    for jump in jumps {
        assert_eq!(jump[1][0], jump[0][0] + 1.0);
        assert_eq!(jump[1][2], jump[0][2] + 35.0);
        let mut here = asked(What::Connection);
        here.arms[0].certificate = jump[0][0];
        assert_eq!(told(&here, "above"), jump[0][0]);
        here.arms[0].certificate = jump[1][0];
        assert_eq!(told(&here, "below"), jump[0][0]);
    }
}

/// A handshake of six segments is more than half of the window, and opens it for a record of twelve.
#[test]
fn a_staircase_falls_between_two_bytes() {
    let mut question = asked(What::Staircase);
    question.network.payload = 16_000.0;
    question.network.response.record = 16_000.0;
    question.sweep.to = 14_000.0;
    let steps = answer(&question.numbers());
    let rows: Vec<&[f64]> = steps.chunks(STEP.len()).collect();
    let falls: Vec<_> = (rows.windows(2))
        .filter(|pair| pair[1][2] < pair[0][2])
        .collect();
    assert_eq!(falls.len(), 1);
    for fall in falls {
        assert_eq!(fall[1][0], fall[0][0] + 1.0);
        assert_eq!(fall[1][2], fall[0][2] - 35.0);
        assert_eq!(fall[1][1], fall[0][1]);
    }
}

#[test]
fn a_difference_is_that_of_connections() {
    let mut question = asked(What::Difference);
    question.arms[1].certificate = 12_000.0;
    question.sweep = layout::Sweep {
        from: 1024.0,
        to: 400_000.0,
        steps: 20.0,
    };
    let found = answer(&question.numbers());
    let mut sooner = 0;
    for point in found.chunks(DIFFERENCE.len()) {
        for arm in [0, 1] {
            let mut alone = asked(What::Connection);
            alone.arms[0] = question.arms[arm];
            alone.network.payload = point[0];
            assert_eq!(told(&alone, "last"), point[1 + arm]);
        }
        sooner += usize::from(point[2] < point[1]);
    }
    // Nine segments of handshake have opened the window.
    assert!(sooner > 3, "{found:?}");
}

#[test]
fn what_is_no_question_has_no_answer() {
    for numbers in [&[][..], &[0.0], &[4.0], &[f64::NAN], &[1.5]] {
        assert!(answer(numbers).is_empty(), "{numbers:?}");
    }
}

/// What a site's server does besides: tickets and their writes, payload of a record, writes of the handshake and of the response,
/// and whether it asks for another hello.
type Besides = (u32, [u32; 2], u32, [u32; 2], [u32; 2], bool);

fn besides() -> impl Strategy<Value = Besides> {
    let writes = || {
        [
            prop_oneof![Just(0), 1_u32..3000].boxed(),
            (0_u32..3000).boxed(),
        ]
    };
    (
        prop_oneof![Just(0), 1_u32..2000],
        writes(),
        prop_oneof![Just(0), 500_u32..16_384],
        writes(),
        writes(),
        any::<bool>(),
    )
}

impl Question {
    fn with(
        mut self,
        (tickets, ticket_writes, record, writes, of_response, retries): Besides,
    ) -> Question {
        let Network {
            tickets: of_tickets,
            response,
            ..
        } = &mut self.network;
        response.writes[..2].copy_from_slice(&of_response.map(f64::from));
        response.record = f64::from(record);
        of_tickets.wire = f64::from(tickets);
        of_tickets.writes[..2].copy_from_slice(&ticket_writes.map(f64::from));
        self.arms[0].server_writes[..2].copy_from_slice(&writes.map(f64::from));
        if retries {
            self.arms[1].hello_retry_request = 99.0;
            self.arms[1].second_client_hello = 1500.0;
        }
        self
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever a page asks: it gets numbers, soon.
    #[test]
    fn any_numbers_are_answered(
        what in 1_u8..=3,
        numbers in prop::collection::vec(
            prop_oneof![any::<f64>(), -1e3..1e3, 0.0..1e5, Just(f64::NAN), Just(f64::INFINITY)],
            0..60,
        ),
    ) {
        let mut question = vec![f64::from(what)];
        question.extend(numbers);
        // Responses of 64 MiB take seconds.
        let payload = 1 + Network::names().iter().position(|name| *name == "payload").unwrap();
        let usual = Question::default().numbers().len();
        // How far a sweep goes.
        let to = usual - 2;
        question.resize(usual, 0.0);
        question[payload] = question[payload].min(1e5);
        question[to] = question[to].min(1e5);
        let found = answer(&question);
        // Of what comes after the first byte over QUIC, nothing is known.
        let asked = Question::of(&question);
        // What is no number is 0.
        let over_tcp = |transport: f64| transport.is_nan() || transport < 0.5;
        let is_known = what < 3 || asked.arms.iter().all(|arm| over_tcp(arm.transport));
        prop_assert_eq!(!found.is_empty(), is_known);
        prop_assert!(found.iter().all(|number| number.is_finite()));
    }

    /// The first byte is that of a shorter response, so a staircase need not walk to the last one.
    #[test]
    fn the_first_byte_does_not_wait_for_the_rest(
        certificate in 100_u32..80_000, payload in 1_u32..300_000, rtt in 0_u32..300, rate in 0_u32..100, initcwnd in 1_u32..40,
        besides in besides(),
    ) {
        let mut question = asked(What::Connection).with(besides);
        question.network.rtt = f64::from(rtt);
        question.network.rate = f64::from(rate);
        question.network.initcwnd = f64::from(initcwnd);
        question.network.payload = f64::from(payload);
        question.arms[0].certificate = f64::from(certificate);
        let mut stairs = question;
        stairs.what = 2.0;
        stairs.sweep = layout::Sweep { from: f64::from(certificate), to: f64::from(certificate), steps: 1.0 };
        prop_assert_eq!(answer(&stairs.numbers())[2], told(&question, "first"));
    }

    /// A difference is read off one walk, of the longest response. Each point is that of a walk of its own.
    #[test]
    fn shorter_responses_come_as_the_beginning_of_longer_ones(
        certificates in [100_u32..80_000, 100_u32..80_000],
        to in 2_000_u32..600_000,
        rtt in 0_u32..300_000,
        rate in prop_oneof![Just(0.0), 0.1_f64..1000.0],
        initcwnd in 1_u32..40,
        mss in 524_u32..3000,
        besides in besides(),
    ) {
        let mut question = asked(What::Difference).with(besides);
        question.network.rtt = f64::from(rtt) / 1000.0;
        question.network.rate = rate;
        question.network.initcwnd = f64::from(initcwnd);
        question.network.mss = f64::from(mss);
        for (arm, certificate) in question.arms.iter_mut().zip(certificates) {
            arm.certificate = f64::from(certificate);
        }
        question.sweep = layout::Sweep { from: 100.0, to: f64::from(to), steps: 12.0 };
        for point in answer(&question.numbers()).chunks(DIFFERENCE.len()) {
            for arm in [0, 1] {
                let mut alone = question;
                alone.what = 1.0;
                alone.arms[0] = question.arms[arm];
                alone.network.payload = point[0];
                prop_assert_eq!(told(&alone, "last"), point[1 + arm], "{:?} of {:?}", point, alone);
            }
        }
    }
}
