#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use super::*;
use crate::{PopulationDistribution as Distribution, Shape};

fn read(name: &str) -> Traffic {
    Traffic::read(name, &StudyFolder::HERE).unwrap()
}

/// Every kind is read, has a source for each of its numbers, and each that somebody has published has a year.
#[test]
fn every_number_of_every_kind_says_who_says_so() {
    for (name, text) in NAMED {
        let kind = Kind::parse(text, Path::new(name)).unwrap();
        let keys = kind.population.drawn().map(Parameter::name);
        let keys: Vec<&str> = keys.chain(["resumes", "mutual"]).collect();
        for key in keys {
            let fact = kind.facts.iter().find(|fact| fact.key == key);
            let fact = fact.unwrap_or_else(|| panic!("{name}: nobody says {key}"));
            if let Some(published) = &fact.published {
                let years = ["20", "19"].map(|century| published.contains(century));
                assert!(years.contains(&true), "{name}: {key} has no year");
            }
        }
        assert!(!kind.what.is_empty(), "{name}");
        assert_eq!(*read(name).kind().what, kind.what);
    }
}

/// The median of ten thousand draws is the one that the file has; of an exponential distribution, its mean times ln 2.
#[test]
fn the_medians_of_draws_are_those_of_the_files() {
    const DRAWS: u32 = 10_000;
    for name in Traffic::ALL {
        let population = read(name).alone();
        let mut checked = 0;
        for (parameter, distribution) in &population.parameters {
            let median = match distribution {
                Distribution::Number { shape, .. } => match shape {
                    Shape::LogNormal { median, .. } => *median,
                    Shape::Exponential { mean } => mean * std::f64::consts::LN_2,
                    Shape::Percentiles(points) => {
                        points
                            .iter()
                            .find(|(percent, _)| *percent == 50.0)
                            .unwrap()
                            .1
                    }
                    Shape::Uniform { least, most } => f64::midpoint(*least, *most),
                },
                Distribution::Values(_) => continue,
            };
            let number = |index| {
                let draw = population.draw(index);
                let values = draw.values.iter();
                let mut text = values
                    .filter(|(one, _)| one == parameter)
                    .map(|(_, text)| text.clone());
                crate::population::number(*parameter, &text.next().unwrap()).unwrap()
            };
            let mut numbers: Vec<f64> = (0..DRAWS).map(number).collect();
            numbers.sort_by(f64::total_cmp);
            let drawn = numbers[numbers.len() / 2];
            // Counts are whole.
            let margin = (0.06 * median).max(if *parameter == Parameter::DATA {
                0.0
            } else {
                0.5
            });
            assert!(
                (drawn - median).abs() <= margin,
                "{name}: {parameter} is {drawn} in the middle, not {median}"
            );
            checked += 1;
        }
        assert!(
            checked > 0 || ["updates"].contains(&name),
            "{name} draws no number"
        );
    }
}

#[test]
fn arithmetic_takes_what_stands_in_the_middle() {
    let medians = read("updates").beside([Parameter::UPLOAD]).medians();
    let texts: Vec<_> = medians
        .iter()
        .map(|(one, text)| (one.name(), &**text))
        .collect();
    assert_eq!(
        texts,
        [("requests", "2"), ("think", "200ms"), ("data", "77KiB")]
    );
}

/// Draws depend on the seed and on the connection alone: whoever asks again gets the same ones.
#[test]
fn draws_are_the_same_for_everybody_and_of_the_seed() {
    for name in Traffic::ALL {
        let cell = Cell {
            traffic: Some(read(name)),
            ..Cell::default()
        };
        let with_seed = |seed| Population {
            seed: lastbyte_link::Seed(seed),
            ..cell.drawing(None).unwrap()
        };
        let draws = |seed| {
            (0..50)
                .map(|index| with_seed(seed).draw(index))
                .collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7), "{name}");
        assert_ne!(draws(7), draws(8), "{name}");
    }
}

/// Links are their users', and work is the traffic's: neither changes the other's draws.
#[test]
fn links_and_traffic_are_drawn_beside_each_other() {
    let links = "joint = { class = [\"near\", \"far\"], rtt = [\"5ms\", \"200ms\"] }";
    let links = Population::parse(links, Path::new("links")).unwrap();
    let both = read("web").under(links.clone());
    let alone = read("web").alone();
    for index in 0..500 {
        let draw = both.draw(index);
        let link = links.draw(index / 11);
        assert_eq!(draw.class, link.class);
        let of_link = |(parameter, _): &&(Parameter, Arc<str>)| parameter.is_of_link();
        let (links, work): (Vec<_>, Vec<_>) = draw.values.iter().partition(of_link);
        assert_eq!(links, link.values.iter().collect::<Vec<_>>());
        assert_eq!(work, alone.draw(index).values.iter().collect::<Vec<_>>());
        assert_eq!(draw.session(), alone.draw(index).session());
    }
}

#[test]
fn what_is_said_besides_has_the_last_word() {
    let web = read("web").beside([Parameter::DATA, Parameter::RTT]);
    assert!(!web.draws(Parameter::DATA));
    assert!(!web.alone().draws(Parameter::DATA));
    assert!(web.alone().drawn().any(|one| one.name() == "think"));
    assert_eq!(web, web.beside([Parameter::DATA]));
    assert_ne!(web, read("web"));
    let own = "think = \"7s\"\nresumes = \"1%\"\nconnections_per_user = 2";
    let under = read("web").under(Population::parse(own, Path::new("own")).unwrap());
    let draw = under.draw(3);
    let thinks: Vec<_> = (draw.values.iter())
        .filter(|(one, _)| one.name() == "think")
        .collect();
    assert_eq!((thinks.len(), &*thinks[0].1), (1, "7s"));
    assert_eq!(under.connections_per_user.get(), 2);
    let resumed = (0..5000)
        .filter(|index| under.draw(*index).session() == Some(lastbyte_sizes::Resumption::Ticket));
    assert!((20..90).contains(&resumed.count()));
}

#[test]
fn a_file_of_ones_own_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = StudyFolder::of(&folder.path().join("study.toml"));
    let write = |text: &str| {
        fs::write(folder.path.join("own.toml"), text).unwrap();
        Traffic::read("own.toml", &folder)
    };
    // As `lastbyte zeek -o` writes it: links are left out.
    let profile = "[profile]\nconnections = 3\n\n[population.joint]\nclass = [\"cdn\", \"other\"]\n\
                   resumes = [true, false]\ndata_bytes = [1000, 2000]\nrtt = [\"5ms\", \"9ms\"]\nweight = [1, 2]\n";
    let own = write(profile).unwrap();
    let draw = own.alone().draw(0);
    assert_eq!(draw.values.len(), 1);
    assert!(draw.class.is_some() && draw.session().is_some());
    assert_eq!(own.alone().files.len(), 1);
    for (text, expected) in [
        ("", "missing \"population\""),
        ("[population]\n", "does not say how much servers answer"),
        (
            "[population]\nrtt = \"5ms\"\n",
            "does not say how much servers answer",
        ),
        ("[population]\ndatum = \"1KiB\"\n", "did you mean \"data\"?"),
        (
            "mutual = \"perhaps\"\n[population]\ndata = \"1KiB\"\n",
            "unknown answer of mutual \"perhaps\"",
        ),
        (
            "[population]\ndata = \"1KiB\"\n[source.think]\nstated = \"x\"\n",
            "unknown key \"think\" in [source]",
        ),
        (
            "[population]\ndata = \"1KiB\"\n[source.data]\n",
            "missing \"published\" in [source.data]",
        ),
        ("[population", "not TOML"),
        (
            "[population]\ndata = \"1KiB\"\njoint = \"rtts.csv\"\n",
            "can't name another file",
        ),
    ] {
        let problem = write(text).unwrap_err().to_string();
        assert!(
            problem.contains(expected) && problem.contains("own.toml:") && !problem.contains('\n'),
            "{text:?}: {problem}"
        );
    }
    let problem = Traffic::read("none.toml", &folder).unwrap_err().to_string();
    assert!(
        problem.starts_with("can't read traffic \"none.toml\": "),
        "{problem}"
    );
}

#[test]
fn who_writes_another_name_is_told_which_was_meant() {
    for (name, hint) in [
        ("wbe", "did you mean \"web\"?"),
        ("cloud", "did you mean \"cloud-api\"?"),
        (
            "zzz",
            "use one of web, mobile-web, social, cloud-api, video, updates, iot, mesh",
        ),
    ] {
        let problem = Traffic::read(name, &StudyFolder::HERE)
            .unwrap_err()
            .to_string();
        let start = format!("unknown kind of traffic {name:?}: {hint}");
        assert!(problem.starts_with(&start), "{problem}");
    }
    assert_eq!(read("WEB").kind().what, read("web").kind().what);
}

#[test]
fn clients_prove_themselves_where_the_traffic_says_so() {
    let arm = |text: &str| text.parse::<Arm>().unwrap();
    let cell = |name: &str| Cell {
        traffic: Some(read(name)),
        ..Cell::default()
    };
    let arms = vec![
        arm("x25519/ecdsa-p256/intermediates=2"),
        arm("x25519/ml-dsa-44/mutual=ecdsa-p256"),
    ];
    let labels = |cells: &[Cell]| {
        let arms = arms_of_traffic(arms.clone(), cells)?;
        Ok::<_, String>(arms.into_iter().map(|arm| arm.label).collect::<Vec<_>>())
    };
    assert_eq!(
        labels(&[cell("mesh"), cell("iot")]).unwrap(),
        [
            "x25519/ecdsa-p256/intermediates=2/mutual=ecdsa-p256/client_intermediates=2",
            "x25519/ml-dsa-44/mutual=ecdsa-p256"
        ]
    );
    assert_eq!(labels(&[cell("web")]).unwrap()[0], arms[0].label);
    let problem = labels(&[cell("web"), cell("mesh")]).unwrap_err();
    assert!(
        problem.starts_with(
            "of the traffic \"mesh\" clients prove themselves, and of \"web\" they don't: measure them apart"
        ),
        "{problem}"
    );
}

/// Of a study: what stands where, what is written of it, and what can't be.
#[test]
fn a_study_names_traffic_for_all_or_for_some() {
    let parse = |text: &str| {
        let head = "[arm.one]\ntls = \"x25519/ecdsa-p256\"\n[link.near]\nrtt = \"20ms\"\n";
        crate::Study::parse(&format!("{head}{text}"), Path::new("study.toml"))
    };
    let study = parse(
        "[population]\ntraffic = \"video\"\nthink = \"1ms\"\n[[measure]]\nid = \"several\"\ntraffic = [\"web\", \"updates\"]\n\
         data = [\"1KiB\", \"2KiB\"]\n[[measure]]\nid = \"usual\"\n[[measure]]\nid = \"proving\"\n[[measure.cell]]\nlink = \"near\"\n\
         traffic = \"mesh\"\n",
    )
    .unwrap();
    let of = |measure: usize| &study.measures[measure].experiment;
    let traffic = |measure| -> Vec<String> {
        let cells = of(measure).cells.iter();
        cells.map(|cell| cell.to_string()).collect()
    };
    assert_eq!(
        traffic(0),
        ["web", "web", "updates", "updates"].iter().zip(["1KiB", "2KiB"].iter().cycle())
            .map(|(kind, data)| format!("near, RTT 20ms, no rate limit, loss 0%, initcwnd 10, traffic {kind}, think drawn, {data}"))
            .collect::<Vec<_>>()
    );
    assert!(
        traffic(1)[0].ends_with("traffic video, think drawn"),
        "{:?}",
        traffic(1)
    );
    assert_eq!(of(0).arms[0].label, "x25519/ecdsa-p256");
    assert_eq!(of(2).arms[0].label, "x25519/ecdsa-p256/mutual=ecdsa-p256");
    assert_eq!(of(2).arms[0].name, "one");
    let written = study.to_toml();
    let again = crate::Study::parse(&written, Path::new("study.toml")).unwrap();
    assert_eq!(again.measures, study.measures, "{written}");
    for (text, expected) in [
        (
            "[population]\n[[measure]]\nid = \"m\"\n",
            ":5: the population draws nothing",
        ),
        (
            "[[measure]]\nid = \"m\"\ntraffic = \"wbe\"\n",
            ":7: unknown kind of traffic \"wbe\": did you mean \"web\"?",
        ),
        (
            "[[measure]]\nid = \"m\"\ntraffic = [\"web\", \"iot\"]\n",
            "of the traffic \"iot\" clients prove themselves, and of \"web\" they don't",
        ),
        (
            "[population]\nthink = \"1s\"\n[[measure]]\nid = \"m\"\ntraffic = \"web\"\nthink = \"2s\"\n",
            "think",
        ),
        (
            "[[measure]]\nid = \"m\"\n[[search]]\nid = \"s\"\nfrom = \"2KB\"\nto = \"9KB\"\ntraffic = \"web\"\n",
            "\"traffic\" is drawn, and an edge is that of one response",
        ),
    ] {
        let problem = parse(text).unwrap_err().to_string();
        assert!(
            problem.contains(expected) && !problem.contains('\n'),
            "{text}: {problem}"
        );
    }
}

/// `docs/traffic.md` has the table of all kinds, line by line.
#[test]
fn the_page_has_the_table() {
    let line = |cells: [&str; 5]| format!("| {} |\n", cells.join(" | "));
    let mut table = line(["kind", "key", "value", "published", "stated"]) + &line(["---"; 5]);
    for name in Traffic::ALL {
        let traffic = read(name);
        for fact in &traffic.kind().facts {
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            let value = format!("`{}`", fact.value);
            let key = format!("`{}`", fact.key);
            let name = format!("`{name}`");
            table += &line([&name, &key, &value, &of(&fact.published), &of(&fact.stated)]);
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traffic.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = fs::read_to_string(&page).unwrap();
        let start = text.find("| kind | key |").unwrap();
        let end = start
            + text[start..]
                .find("\n\n")
                .map_or(text.len() - start, |end| end + 1);
        fs::write(&page, format!("{}{table}{}", &text[..start], &text[end..])).unwrap();
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "docs/traffic.md must have\n{table}");
}
