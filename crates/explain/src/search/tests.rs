#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastbyte_link::Seed;
use proptest::prelude::*;

use super::change::changes;
use super::*;
use lastbyte_results::fixtures;
use lastbyte_sizes::Message;
use lastbyte_study::PublishedEdges;

const MS: Duration = Duration::from_millis(1);

/// All steps of a function, and how many sizes were asked.
fn walk(first: &[usize], time: impl Fn(usize) -> Option<Duration>) -> (Vec<(usize, usize)>, usize) {
    let stepping = Stepping {
        threshold: MS * 10,
        is_possible: &|_| true,
        hints: &[],
    };
    let mut asked = 0;
    let steps = stepping.walk(first.iter().copied(), |size| {
        asked += 1;
        time(size)
    });
    (steps, asked)
}

/// 100 ms, and 20 more beyond each edge.
fn staircase(edges: &[usize]) -> impl Fn(usize) -> Option<Duration> {
    move |size| {
        let beyond = edges.iter().filter(|edge| size > **edge).count() as u32;
        Some(MS * (100 + 20 * beyond))
    }
}

#[test]
fn edges_are_found_to_the_byte() {
    let first = [0, 500, 1000];
    for edges in [
        &[][..],
        &[1],
        &[499],
        &[500],
        &[501],
        &[999],
        &[300, 700],
        &[600, 601],
        &[501, 998],
    ] {
        let (steps, _) = walk(&first, staircase(edges));
        let expected: Vec<_> = edges.iter().map(|edge| (*edge, edge + 1)).collect();
        assert_eq!(steps, expected);
    }
}

#[test]
fn it_takes_a_halving_for_each_bit() {
    let (_, asked) = walk(&[0, 1 << 14], staircase(&[5000]));
    assert_eq!(asked, 2 + 14);
}

#[test]
fn steps_down_and_failures_are_edges() {
    let time = |size: usize| match size {
        0..=400 => Some(MS * 100),
        401..=700 => Some(MS * 60),
        _ => None,
    };
    assert_eq!(walk(&[0, 500, 1000], time).0, [(400, 401), (700, 701)]);
}

/// What rises by less than the threshold between two sizes has no edge, however much it rises in all.
#[test]
fn a_slope_has_no_edge() {
    let slope = |size: usize| Some(MS * 100 + MS * u32::try_from(size).unwrap() / 10);
    assert_eq!(walk(&[0, 500, 1000], slope).0, []);
}

#[test]
fn sizes_that_no_chain_has_are_passed_over() {
    let times_by_size = |far: usize| TimesBySize::from([(0, Some(MS)), (far, Some(MS * 100))]);
    let stepping = Stepping {
        threshold: MS,
        is_possible: &|size| !(4..=8).contains(&size),
        hints: &[],
    };
    assert_eq!(stepping.next(&times_by_size(12)), [3]);
    let closed = TimesBySize::from([(3, Some(MS)), (9, Some(MS * 100))]);
    assert!(stepping.next(&closed).is_empty());
    assert_eq!(stepping.steps(&closed), [(3, 9)]);
}

/// A hint saves the way, and a wrong one leads nowhere else.
#[test]
fn hints_decide_nothing() {
    for hint in [0, 299, 300, 301, 700, 999, 5000] {
        let stepping = Stepping {
            threshold: MS * 10,
            is_possible: &|_| true,
            hints: &[hint],
        };
        let mut asked = 0;
        let steps = stepping.walk([0, 1000], |size| {
            asked += 1;
            staircase(&[300])(size)
        });
        assert_eq!(steps, [(300, 301)], "{hint}");
        assert_eq!(asked == 4, hint == 300, "{hint}: {asked}");
    }
}

proptest! {
    /// Whatever a function does, what is told as a step is one, and what is monotone has all told.
    #[test]
    fn steps_of_a_staircase(edges in prop::collection::btree_set(1..3000_usize, 0..6)) {
        let edges: Vec<usize> = edges.into_iter().collect();
        let first: Vec<usize> = (0..=3000).step_by(250).collect();
        let expected: Vec<_> = edges.iter().map(|edge| (*edge, edge + 1)).collect();
        prop_assert_eq!(walk(&first, staircase(&edges)).0, expected);
    }
}

const STUDY: &str = r#"
[arm.ecdsa]
tls = "X25519MLKEM768/ecdsa-p256"
[arm.ml-dsa]
tls = "X25519MLKEM768/ml-dsa-44"
[link.x]
rtt = ["35ms", "250ms"]
[[measure]]
id = "m"
[[search]]
id = "edges"
from = "2KB"
to = "60KB"
sizes = 9
connections = 9
initcwnd = [10, 25]
data = "1KiB"
"#;

fn search(text: &str) -> Search {
    let study = Study::parse(text, Path::new("study.toml")).unwrap();
    study.searches[0].clone()
}

/// What a kernel would measure if it were as arithmetic has it, but for what `bend` does to the bytes on the wire.
/// ECDSA's signatures have three lengths.
fn measure(round: &Study, searched: &mut Searched, bend: &dyn Fn(u32) -> u32) {
    for measure in &round.measures {
        let [cell] = &measure.experiment.cells[..] else {
            panic!()
        };
        for (index, arm) in measure.experiment.arms.iter().enumerate() {
            let mut sample =
                fixtures::samples(&Experiment::new(vec![arm.clone()], vec![cell.clone()], 9))
                    .remove(0);
            sample.arm = index;
            let usual = crate::wire(arm).unwrap();
            let certificate = usual.bytes(Message::Certificate) as usize;
            let verify = usual.bytes(Message::CertificateVerify);
            for row in &mut sample.rows {
                let longer = if arm.label.contains("ecdsa") {
                    // Two of nine are a byte longer, two a byte shorter.
                    [1, 0, 2, 1, 1, 0, 1, 2, 1][row.index as usize % 9]
                } else {
                    1
                };
                row.exchange = {
                    let by_chance = ByChance {
                        verify: verify + longer - 1,
                        ..ByChance::default()
                    };
                    wire_with(arm, certificate, Some(by_chance)).unwrap()
                };
                let mut bent = row.exchange.clone();
                let sent = bend(bent.sent(HandshakeFlight::Server));
                bent.handshake.see(HandshakeFlight::Server, Some(sent));
                let times = expected(&bent, cell, arm.record_size, Compute::default());
                row.times.ttfb = times.ttfb;
            }
            let validity = sample.validity(&measure.experiment);
            searched.add_sample(&measure.id, arm, &sample, validity);
        }
    }
    searched.rounds += 1;
}

fn searched(bend: &dyn Fn(u32) -> u32) -> Searched {
    let mut searched = Searched::new(&search(STUDY));
    while let Some(round) = searched.next() {
        // What a round asks is read again from its file.
        let read = Study::parse(&round.text, Path::new("round.toml")).unwrap();
        assert_eq!(read.measures.len(), round.measures.len());
        measure(&read, &mut searched, bend);
        assert!(searched.rounds < 60);
    }
    searched
}

#[test]
fn a_search_finds_what_arithmetic_has() {
    let searched = searched(&|bytes| bytes);
    assert_eq!(searched.problems, BTreeSet::new());
    let found = searched.found();
    assert_eq!(found.len(), 8);
    for found in &found {
        let Edges::Exact(edges) = &found.edges else {
            panic!()
        };
        let cell = &searched.cells()[found.cell];
        assert_eq!(
            edges.len(),
            if cell.initcwnd == 10 { 2 } else { 1 },
            "{cell}"
        );
        assert_eq!(found.arithmetic.as_ref().unwrap().len(), edges.len());
        let window = cell.initcwnd as usize * 1448;
        assert_eq!(edges[0].below.server_flight, window);
        for edge in edges {
            assert_eq!(found.difference(edge), Some(0));
            let (most, fewest) = edge.seen;
            assert_eq!((most, most + 1), (edge.below.server_flight, fewest));
        }
    }
    let [ecdsa, ml_dsa] = [0, 1].map(|arm| {
        let Edges::Exact(edges) = &found[arm].edges else {
            panic!()
        };
        edges[0].below.certificate
    });
    // A CertificateVerify of 79 bytes or of 2428.
    assert_eq!(ecdsa - ml_dsa, 2428 - 79);
}

/// A kernel that sends 7 bytes more has its edges 7 bytes earlier: arithmetic places nothing.
#[test]
fn a_search_can_disagree() {
    for found in searched(&|bytes| bytes + 7).found() {
        let Edges::Exact(edges) = &found.edges else {
            panic!()
        };
        for edge in edges {
            assert_eq!(found.difference(edge), Some(-7));
        }
    }
}

/// After the first look, cells of another RTT take two sizes for each edge.
#[test]
fn other_links_are_quick() {
    let searched = searched(&|bytes| bytes);
    let sizes = |cell| searched.measured(cell, 0).count();
    let far = searched
        .cells()
        .iter()
        .position(|cell| cell.link.rtt() > MS * 100)
        .unwrap();
    assert!(sizes(0) > 9 + 2 * 10);
    assert_eq!(sizes(far), 9 + 2 * 2);
}

#[test]
fn an_unfinished_search_tells_what_it_has() {
    let mut searched = Searched::new(&search(STUDY));
    assert!(searched.found().is_empty());
    let round = searched.next().unwrap();
    let samples: usize = round.measures.iter().map(|m| m.experiment.arms.len()).sum();
    assert!(samples <= ROUND);
    measure(&round, &mut searched, &|bytes| bytes);
    assert!(!searched.is_complete());
    for found in searched.found() {
        let Edges::Exact(edges) = &found.edges else {
            panic!()
        };
        assert_eq!(edges, &[]);
        assert!(!found.line.is_empty());
    }
}

/// Round numbers were published, so what has edges about there is several things, and ECDSA is none.
#[test]
fn what_published_edges_imply() {
    let published = PublishedEdges {
        source: "a paper".to_owned(),
        edges: vec![10_000, 40_000],
        note: None,
    };
    let guesses = implied(&search(STUDY), &published);
    assert!(guesses.is_sorted_by(|one, other| one.off <= other.off));
    let is_likely = |guess: &Implied| {
        (
            guess.initcwnd,
            &*guess.group.to_string(),
            &*guess.leaf.to_string(),
        ) == (10, "X25519MLKEM768", "ml-dsa-44")
    };
    let likely = guesses.iter().find(|guess| is_likely(guess)).unwrap();
    assert_eq!(likely.edges, [10_685, 39_601]);
    assert_eq!(likely.rest, 14_480 - 10_685);
    assert!(guesses.iter().all(|guess| guess.initcwnd == 10));
    assert!(
        !guesses
            .iter()
            .any(|guess| guess.leaf.to_string().starts_with("ecdsa"))
    );
}

/// Even numbers in [0, 1).
fn uniform(state: &mut u64) -> f64 {
    *state += 1;
    (lastbyte_link::mix(*state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A path on which a share of connections meets a timeout of 200 ms, and a step of 35 ms between two sizes.
fn lossy(seed: u64, share: f64, connections: usize, step: Option<usize>) -> Vec<Size> {
    let mut state = lastbyte_link::mix(seed);
    let luck: Vec<[f64; 3]> = (0..connections)
        .map(|_| [0; 3].map(|_| uniform(&mut state)))
        .collect();
    (0..40)
        .map(|place| Size {
            bytes: 2000 + 1000 * place,
            times: luck
                .iter()
                .map(|[lost, other, jitter]| {
                    let own = uniform(&mut state);
                    let base = if step.is_some_and(|step| place >= step) {
                        140.0
                    } else {
                        105.0
                    };
                    let late = if *lost < share {
                        200.0 + 100.0 * other
                    } else {
                        0.0
                    };
                    // Larger ones lose a little more.
                    let more = if own < place as f64 * 0.002 {
                        35.0
                    } else {
                        0.0
                    };
                    base + late + more + jitter * 8.0 + own
                })
                .collect(),
        })
        .collect()
}

#[test]
fn a_change_point_has_an_honest_interval() {
    const RUNS: u64 = 60;
    let mut holds = 0;
    for seed in 0..RUNS {
        let step = 5 + (seed as usize * 7) % 30;
        let found = changes(&lossy(seed, 0.3, 100, Some(step)), 17.5, Seed(seed));
        let [change] = &found[..] else {
            panic!("{seed}: {found:?}")
        };
        let edge = 2000 + 1000 * step;
        let (low, high) = change.interval;
        holds += u64::from(low < edge && edge <= high);
        let (height, least, most) = change.height;
        assert!(
            least <= height && height <= most && (height - 35.0).abs() < 10.0,
            "{change:?}"
        );
    }
    assert!(holds * 100 >= RUNS * 95, "{holds} of {RUNS}");
}

#[test]
fn where_nothing_steps_nothing_is_told() {
    for seed in 0..40 {
        assert_eq!(changes(&lossy(seed, 0.3, 100, None), 17.5, Seed(seed)), []);
    }
}

/// Where connections differ by ten times the step, and each size has luck of its own, no step is sure.
#[test]
fn luck_can_hide_a_step() {
    let told = (0..20).filter(|seed| {
        let mut sizes = lossy(*seed, 0.0, 50, Some(20));
        let mut state = lastbyte_link::mix(!seed);
        for time in sizes.iter_mut().flat_map(|size| &mut size.times) {
            *time += 400.0 * uniform(&mut state);
        }
        let found = changes(&sizes, 17.5, Seed(*seed));
        !found.is_empty()
    });
    assert!(told.count() < 10);
}

#[test]
fn two_steps_are_two() {
    let mut sizes = lossy(3, 0.1, 100, Some(12));
    for size in sizes.iter_mut().skip(30) {
        size.times.iter_mut().for_each(|time| *time += 35.0);
    }
    let found = changes(&sizes, 17.5, Seed(1));
    let below: Vec<usize> = found.iter().map(|change| change.below).collect();
    assert_eq!(below, [2000 + 11_000, 2000 + 29_000]);
}

#[test]
fn failures_are_no_numbers() {
    let mut sizes = lossy(3, 0.1, 60, None);
    for size in sizes.iter_mut().skip(25) {
        size.times.iter_mut().for_each(|time| *time = f64::INFINITY);
    }
    let found = changes(&sizes, 17.5, Seed(1));
    assert_eq!(
        found.iter().map(|change| change.above).collect::<Vec<_>>(),
        [27_000]
    );
    assert_eq!(changes(&[], 17.5, Seed(1)), []);
}
