#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use lastbyte_flights::Compute;
use lastbyte_link::Bytes;
use proptest::prelude::*;

use super::model::aggregate;
use super::*;
use crate::wire;
use lastbyte_results::expected;
use lastbyte_study::{Arm, Cell, Joint};

const CLASSICAL: &str = "x25519/ecdsa-p256";
/// Two flights from a window of 10 segments.
const LARGE: &str = "SecP256r1MLKEM768/ml-dsa-65";

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn table(text: &str) -> RttTable {
    RttTable::parse("table.csv", text.as_bytes()).unwrap()
}

fn users(text: &str) -> Users {
    Users::parse("users.csv", text.as_bytes()).unwrap()
}

/// Without a rate, so that times are whole RTTs.
fn question(arms: &[&str]) -> Question {
    let cell = Cell {
        data: Bytes(20 * 1024),
        ..Cell::default()
    };
    Question {
        arms: arms.iter().map(|arm| arm.parse().unwrap()).collect(),
        origin_arm: None,
        front: cell.clone(),
        back: cell,
        connections: OriginConnection::ALL.to_vec(),
        origin: "Virginia".to_owned(),
        edges: Vec::new(),
        stated: Vec::new(),
        within: None,
    }
}

fn answer(question: Question, users: &str, table: &str) -> Geography {
    Geography::new(question, &self::users(users), &self::table(table)).unwrap()
}

fn refusal(question: Question, users: &str, table: &str) -> String {
    let refused = Geography::new(question, &self::users(users), &self::table(table));
    let error = refused.unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

const TABLE: &str = "from,to,rtt_ms\nFrankfurt,Virginia,100\n";

#[test]
fn times_are_whole_round_trips() {
    let users = "region,edge,edge_rtt\nGermany,Frankfurt,10ms\n";
    let times = |question| {
        let answer = answer(question, users, TABLE);
        let ways: Vec<&str> = answer.ways.iter().map(|way| way.name()).collect();
        assert_eq!(ways, ["direct", "cold", "warm", "cached"]);
        answer.settings[0].regions[0].ttfb.clone()
    };
    // TCP, handshake, request: 3 round trips in front, 3 or 1 behind; direct is as far as both.
    let classical = [330, 330, 130, 30].map(ms);
    // One more in each handshake.
    let large = [440, 440, 140, 40].map(ms);
    assert_eq!(times(question(&[CLASSICAL, LARGE])), [classical, large]);
    // Behind the edge it can be another arm, whose handshake a warm connection has behind it.
    let classical_behind = Question {
        origin_arm: Some(CLASSICAL.parse().unwrap()),
        ..question(&[LARGE])
    };
    assert_eq!(times(classical_behind), [[440, 340, 140, 40].map(ms)]);
    // And another window: no flight more.
    let mut wide = question(&[LARGE]);
    wide.back.initcwnd = 20;
    assert_eq!(times(wide), [[440, 340, 140, 40].map(ms)]);
}

/// A round trip less for each connection that begins, and one more for a chain that credit ends.
#[test]
fn quic_has_no_round_trip_of_its_own() {
    let over_quic = |arm| format!("{arm}/transport=quic");
    let arms = [CLASSICAL, LARGE].map(over_quic);
    let asked = || question(&arms.each_ref().map(String::as_str));
    let users = |edge| format!("region,edge,edge_rtt\nGermany,Frankfurt,{edge}\n");
    let answer = answer(asked(), &users("10ms"), TABLE);
    assert_eq!(
        answer.settings[0].regions[0].ttfb,
        [[220, 220, 120, 20].map(ms), [330, 330, 130, 30].map(ms)]
    );
    // Ends that begin with a shorter RTT send again what is on its way.
    let refused = refusal(asked(), &users("400ms"), TABLE);
    assert!(
        refused.contains("region \"Germany\": over an RTT of 500ms"),
        "{refused}"
    );
    assert!(refused.contains("--quic-initial-rtt"), "{refused}");
    let mut later = asked();
    later.front.quic.initial_rtt = ms(600);
    self::answer(later, &users("400ms"), TABLE);
    let mut narrow = asked();
    narrow.back.hosts.mtu = "1227".parse().unwrap();
    assert!(refusal(narrow, &users("10ms"), TABLE).contains("1228 does"));
}

/// What is added is what a server in front would compute for so long.
#[test]
fn an_edge_that_waits_is_a_server_that_computes() {
    let mut question = question(&[LARGE]);
    for way in [
        &mut question.front.link.forward,
        &mut question.front.link.backward,
    ] {
        way.rate = Some("5mbit".parse().unwrap());
        way.delay = Duration::from_micros(7_500);
    }
    let arm: Arm = LARGE.parse().unwrap();
    let front = question.front.clone();
    let answer = answer(
        question,
        "region,edge,edge_rtt\nGermany,Frankfurt,15ms\n",
        TABLE,
    );
    let compute = Compute {
        response: ms(400),
        ..Compute::default()
    };
    let walked = expected(&wire(&arm).unwrap(), &front, arm.record_size, compute);
    let ttfb = &answer.settings[0].regions[0].ttfb[0];
    assert_eq!(Some(ttfb[1]), walked.ttfb);
}

#[test]
fn distances_are_measured_stated_or_sums_in_this_order() {
    let own = "from,to,rtt_ms\n\
               Frankfurt,Virginia,100\nParis,Virginia,90\n\
               Germany,Frankfurt,12\nGermany,Paris,20\nGermany,Virginia,115\n";
    let users = "region,edge,edge_rtt_ms,origin_rtt\n\
                 Germany,,,\nFrance,Paris,7.5,99ms\nSpain,Paris,,\n";
    let question = Question {
        edges: vec!["Frankfurt".to_owned(), "Paris".to_owned()],
        stated: vec![ms(30), ms(60)],
        ..question(&[CLASSICAL])
    };
    let answer = answer(question, users, own);
    let stated: Vec<_> = answer.settings.iter().map(|one| one.stated).collect();
    assert_eq!(stated, [Some(ms(30)), Some(ms(60))]);
    let far: Vec<_> = (answer.settings[1].regions.iter())
        .map(|one| &one.distances)
        .collect();
    let edges: Vec<_> = far.iter().map(|far| far.edge.as_str()).collect();
    assert_eq!(edges, ["Frankfurt", "Paris", "Paris"]);
    let user_edge: Vec<_> = far.iter().map(|far| far.user_edge).collect();
    assert_eq!(
        user_edge,
        [
            (ms(12), RttSource::Table),
            (Duration::from_micros(7_500), RttSource::Users),
            (ms(60), RttSource::Stated)
        ]
    );
    let user_origin: Vec<_> = far.iter().map(|far| far.user_origin).collect();
    assert_eq!(
        user_origin,
        [
            (ms(115), RttSource::Table),
            (ms(99), RttSource::Users),
            (ms(150), RttSource::Sum)
        ]
    );
}

#[test]
fn what_is_not_known_is_refused_with_both_ends() {
    let one = |users: &str, table: &str| refusal(question(&[CLASSICAL]), users, table);
    let germany = "region,edge,edge_rtt\nGermany,Frankfurt,10ms\n";
    assert_eq!(
        one("region,edge\nGermany,Frankfurt\n", TABLE),
        r#""users.csv": region "Germany" has no RTT to its edge "Frankfurt": give it in a column edge_rtt, or state it, such as --user-edge 5ms,15ms,30ms,60ms"#
    );
    assert_eq!(
        one("region,edge_rtt\nGermany,10ms\n", TABLE),
        r#""users.csv": nothing says where the edge of region "Germany" is: name it in a column edge, or one for all with --edge"#
    );
    assert_eq!(
        one("region,edge,edge_rtt\nGermany,Frankfort,10ms\n", TABLE),
        r#""table.csv": it has no "Frankfort": did you mean "Frankfurt"?"#
    );
    assert_eq!(
        one(germany, "x,Frankfurt,Virginia\nFrankfurt,,\nVirginia,99,\n"),
        r#""table.csv": it has no RTT from "Frankfurt" to "Virginia": the other way it has 99.0 ms: say that in both, if it holds"#
    );
    assert_eq!(
        one(
            germany,
            "x,Frankfurt,Virginia,Lima\nFrankfurt,,,9\nVirginia,,,\n"
        ),
        r#""table.csv": it has no RTT from "Frankfurt" to "Virginia": measure it"#
    );
    let within = "region,edge_rtt\nVirginia,10ms\n";
    assert_eq!(
        one(within, TABLE),
        r#""table.csv": it has no RTT from "Virginia" to itself, where the edge of region "Virginia" and the origin are: state it, such as --within 1ms"#
    );
    let stated = Question {
        within: Some(ms(1)),
        ..question(&[CLASSICAL])
    };
    let stated = answer(stated, within, TABLE);
    let far = &stated.settings[0].regions[0].distances;
    assert_eq!(far.edge_origin, (ms(1), RttSource::Stated));
    let other = Question {
        edges: vec!["Paris".to_owned()],
        ..question(&[CLASSICAL])
    };
    assert!(refusal(other, germany, TABLE).contains("which --edge does not name"));
    let no_data = Question {
        front: Cell::default(),
        ..question(&[CLASSICAL])
    };
    assert!(refusal(no_data, germany, TABLE).contains("no first byte"));
    let mut lossy = question(&[CLASSICAL]);
    lossy.back.link.forward.loss = "1%".parse().unwrap();
    assert!(refusal(lossy, germany, TABLE).contains("loss is luck"));
    let resumed = question(&["x25519/rsa-2048/resume=ticket"]);
    assert!(refusal(resumed, germany, TABLE).contains("a session"));
}

#[test]
fn users_weigh() {
    let times = vec![
        (ms(300), 1.0),
        (ms(100), 6.0),
        (ms(200), 3.0),
        (ms(900), 0.0),
    ];
    let all = aggregate(times);
    assert_eq!((all.mean, all.p50, all.p95), (ms(150), ms(100), ms(300)));
    let users = "region,users,edge,edge_rtt\nGermany,3,Frankfurt,10ms\nPoland,1,Frankfurt,30ms\n";
    let weighed = answer(question(&[CLASSICAL]), users, TABLE);
    // Cached: 30 ms and 90 ms.
    assert_eq!(weighed.settings[0].population[0][3].mean, ms(45));
    let unknown = answer(
        question(&[CLASSICAL]),
        "region,edge,edge_rtt\nGermany,Frankfurt,10ms\n",
        TABLE,
    );
    assert!(unknown.settings[0].population.is_empty());
}

#[test]
fn a_study_can_draw_the_regions() {
    let users = "region,users,edge,edge_rtt\n\"Korea, South\",3,Frankfurt,10.5ms\nPoland,1,Frankfurt,30ms\n";
    let csv = answer(question(&[]), users, TABLE).settings[0].joint_csv();
    assert_eq!(
        csv,
        "class,rtt,weight\n\"Korea, South\",10.5ms,3\nPoland,30ms,1\n"
    );
    let joint = Joint::load("regions.csv", csv.as_bytes()).unwrap();
    assert_eq!(joint.classes(), ["Korea, South", "Poland"]);
}

#[test]
fn the_table_that_comes_along_is_whole() {
    let azure = RttTable::azure().unwrap();
    assert_eq!(azure.places().count(), 54);
    assert_eq!(azure.pairs().count(), 54 * 53);
    assert_eq!(azure.holes(), []);
    assert_eq!(azure.get("East US", "West US"), Some(ms(74)));
    assert_eq!(azure.get("West US", "East US"), Some(ms(72)));
    assert_eq!(azure.get("East US", "East US"), None);
    let pairs = azure.asymmetries();
    assert_eq!(pairs.len(), 1031);
    assert_eq!(
        (pairs[0].one, pairs[0].other),
        ("Denmark East", "Indonesia Central")
    );
    assert_eq!((pairs[0].there, pairs[0].back), (ms(194), ms(248)));
    let head = azure.head().join(" ");
    for part in [
        "95th percentile",
        "2026-07-30",
        "Attribution 4.0",
        "not for users",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    let error = azure
        .need("East US", "Nowhere at all")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        r#""azure-rtt.csv": it has no "Nowhere at all": `lastbyte rtt` tells its names"#
    );
}

#[test]
fn tables_that_can_not_be() {
    for (text, expected) in [
        ("", "there is no RTT in it"),
        ("x,A,B\nA,,\nB,,\n", "there is no RTT in it"),
        (
            "x,A\nA,1\nB,-2\n",
            r#"line 3: from "B" to "A": "-2" is a negative RTT"#,
        ),
        (
            "# A\nx,A\n\n# B\nA,0\n",
            r#"line 5: from "A" to "A": "0" is no RTT, since nothing takes no time"#,
        ),
        (
            "x,A\nB,NaN\n",
            r#"line 2: from "B" to "A": "NaN" is no RTT"#,
        ),
        ("x,A\nB,inf\n", "is longer than 60s: is it in milliseconds?"),
        ("x,A\nB,61000\n", "is longer than 60s"),
        ("x,A\nB,near\n", r#"line 2: from "B" to "A": "#),
        ("x,A,A\nB,1,2\n", r#"two columns are "A""#),
        ("x,A\nB,1\nB,2\n", r#"line 3: two lines are of "B""#),
        ("x,A\n,1\n", "line 2: there is no name of a place"),
        ("x,\nA,1\n", "there is no name of a column"),
        (
            "x,A\n\"B\n\",1\nC,1,2\n",
            "line 4 has 3 cells, the first line names 2 columns",
        ),
        ("x,A\n\"B\rC\",1\n", "has a control character"),
        (
            "from,to,rtt_ms\nA,B,5\nA,B,6\n",
            r#"line 3: from "A" to "B" is in line 2 already"#,
        ),
        ("from,to,rtt_ms,rtt\nA,B,5,5ms\n", "leave one out"),
        ("from,to,ms\nA,B,5\n", r#"call it "rtt_ms""#),
        ("from,to,rtt\nA,B,5\n", "missing unit"),
        ("from,to,rtt\nA,B,-5ms\n", "negative duration"),
        ("x,A\nB,\u{fffd}", r#"line 2: from "B""#),
    ] {
        let error = RttTable::parse("t.csv", text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && !error.contains('\n'),
            "{text:?}: {error}"
        );
    }
    let error = RttTable::parse("t.csv", b"x,A\nB,\xff\n").unwrap_err();
    assert!(error.to_string().contains("line 2 is no UTF-8"), "{error}");
}

#[test]
fn regions_that_can_not_be() {
    for (text, expected) in [
        ("region\n", "there is no region in it"),
        ("users\n3\n", r#"there is no column "region""#),
        (
            "region,user\nA,3\n",
            r#"column "user" is none of a region: did you mean "users"?"#,
        ),
        (
            "region,users,weight\nA,3,3\n",
            r#""weight" is there in two columns"#,
        ),
        (
            "region,edge_rtt,edge_rtt_ms\nA,3ms,3\n",
            r#""edge_rtt_ms" is there in two columns"#,
        ),
        ("region\nA\nA\n", r#"line 3: region "A" is there twice"#),
        (
            "region,users\nA,3\nB,\n",
            "line 3: some regions have users and some have none",
        ),
        (
            "region,users\nA,-3\n",
            r#"line 2: "-3" is no number of users"#,
        ),
        (
            "region,users\nA,1e300\n",
            r#"line 2: "1e300" is no number of users: write 0, or"#,
        ),
        (
            "region,users\nA,1e-300\n",
            r#"line 2: "1e-300" is no number of users: write 0, or"#,
        ),
        ("region,users\nA,0\n", "its users are none"),
        ("region,edge_rtt\nA,3\n", "line 2: missing unit"),
        ("region,edge_rtt_ms\nA,-3\n", "negative RTT"),
        ("region,lat\nA,3\n", "a latitude without a longitude"),
        (
            "region,lat,lon\nA,91,3\n",
            r#""91" is no latitude: write degrees from -90 to 90"#,
        ),
        ("region,lat,lon\nA,NaN,3\n", r#""NaN" is no latitude"#),
        ("region,users\n,3\n", "line 2: there is no name of a region"),
    ] {
        let error = Users::parse("u.csv", text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && !error.contains('\n'),
            "{text:?}: {error}"
        );
    }
}

proptest! {
    /// A square and a list of pairs say the same, holes and all.
    #[test]
    fn tables_are_read_as_they_are_written(
        places in prop::collection::btree_set("[A-Za-z][A-Za-z ,\"é]{0,8}[a-z]", 1..6),
        microseconds in prop::collection::vec(prop::option::of(1u64..60_000_000), 36),
    ) {
        let places: Vec<String> = places.into_iter().collect();
        let mut square = csv::Writer::from_writer(Vec::new());
        let mut pairs = csv::Writer::from_writer(Vec::new());
        let mut units = csv::Writer::from_writer(Vec::new());
        let head = ["Source".to_owned()].into_iter().chain(places.iter().cloned());
        square.write_record(head).unwrap();
        pairs.write_record(["from", "to", "rtt_ms"]).unwrap();
        units.write_record(["note", "rtt", "to", "from"]).unwrap();
        let mut all = BTreeMap::new();
        let mut cells = microseconds.iter();
        for from in &places {
            let mut row = vec![from.clone()];
            for to in &places {
                let Some(rtt) = cells.next().unwrap().map(Duration::from_micros) else {
                    row.push(String::new());
                    continue;
                };
                let milliseconds = (rtt.as_micros() as f64 / 1e3).to_string();
                all.insert((from.clone(), to.clone()), rtt);
                row.push(milliseconds.clone());
                pairs.write_record([from, to, &milliseconds]).unwrap();
                units.write_record(["", &format_duration(rtt), to, from]).unwrap();
            }
            square.write_record(row).unwrap();
        }
        prop_assume!(!all.is_empty());
        let square = RttTable::parse("t", &square.into_inner().unwrap()).unwrap();
        prop_assert_eq!(square.places().collect::<Vec<_>>(), places.iter().collect::<Vec<_>>());
        let all_pairs = places.len() * places.len();
        let from_themselves = places.iter().filter(|place| square.get(place, place).is_none());
        prop_assert_eq!(
            square.holes().len() + from_themselves.count() + all.len(),
            all_pairs
        );
        for written in [pairs, units] {
            let table = RttTable::parse("t", &written.into_inner().unwrap()).unwrap();
            prop_assert_eq!(table.pairs().collect::<Vec<_>>(), square.pairs().collect::<Vec<_>>());
        }
        for ((from, to), rtt) in all {
            prop_assert_eq!(square.need(&from, &to), Ok(rtt));
        }
    }
}
