#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use super::*;
use crate::Study;

#[test]
fn the_example_is_a_study() {
    reads(EXAMPLE);
}

/// Each in a study that has all else that it needs.
#[test]
fn every_example_can_be_read() {
    overall();
    networks();
    populations();
    questions();
    searches();
}

/// What holds without a key is what holds with it.
#[test]
fn what_is_usual_can_be_said() {
    let usual = |key: &Key| match key.without {
        Without::Holds(text) => text.strip_prefix('`')?.strip_suffix('`').map(|text| {
            if text.starts_with('[') {
                format!("{} = {text}", key.name)
            } else {
                format!("{} = {text:?}", key.name)
            }
        }),
        Without::Must => None,
    };
    let number = |key: &Key| match key.without {
        Without::Holds(text) => text
            .parse::<u64>()
            .ok()
            .map(|number| format!("{} = {number}", key.name)),
        Without::Must => None,
    };
    let said = |keys: &[Key]| -> Vec<String> {
        keys.iter()
            .filter_map(|key| usual(key).or_else(|| number(key)))
            .collect()
    };
    let silent = told("", "", "", "");
    for line in [said(keys::TOP), said(keys::SAMPLING)].concat() {
        assert_eq!(told(&line, "", "", ""), silent, "{line}");
    }
    for line in said(keys::FIGURE) {
        assert_eq!(told("", &line, "", ""), silent, "{line}");
    }
    for line in said(keys::SEARCH) {
        assert_eq!(told("", "", &line, ""), silent, "{line}");
    }
    for line in [said(keys::PUBLISHED), said(keys::QUESTION)].concat() {
        assert_eq!(told("", "", "", &line), silent, "{line}");
    }
}

/// What is read of a study that says this above all, of a figure, of a search and of published numbers.
fn told(top: &str, figure: &str, search: &str, published: &str) -> String {
    let text = format!(
        "{top}\n{EXAMPLE}{figure}\n[[search]]\nid = \"edges\"\nfrom = \"2KB\"\nto = \"100KB\"\ndata = \"1KiB\"\n{search}\n\
         [[published]]\nsource = \"II\"\nmeasure = \"growth\"\narm = \"pq\"\nwhat = \"time\"\npool = [\"data\", \"loss\"]\n\
         values = [1, 2, 3]\n{published}\n"
    )
    .replacen("connections = 1000\n", "", 1);
    let study = Study::parse(&text, Path::new("study.toml"))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let Study {
        percentiles,
        engine,
        measures,
        figures,
        searches,
        published,
        ..
    } = study;
    format!(
        "{:?}",
        (percentiles, engine, measures, figures, searches, published)
    )
}

fn overall() {
    for key in keys::TOP {
        match key.name {
            "population" => study(&[("link", ""), (key.name, key.example)]),
            "answer" | "number" => study(&["answer", "number"].map(|name| {
                let key = keys::TOP.iter().find(|key| key.name == name).unwrap();
                (name, key.example)
            })),
            name => study(&[(name, key.example)]),
        }
    }
    for key in keys::SAMPLING {
        study(&[(key.name, key.example)]);
    }
    for key in keys::UNTIL {
        study(&[("connections", &table(keys::UNTIL, key, ""))]);
    }
    for key in keys::ARM {
        let arm = table(keys::ARM, key, "");
        study(&[("arm", &format!("{{ classical = {arm}, pq = {PQ} }}"))]);
    }
}

fn networks() {
    let link = |keys: &str| study(&[("link", &format!("{{ lte-m = {{ {keys} }} }}"))]);
    for key in keys::NETWORK {
        link(&pair(key));
    }
    for key in keys::DELAY {
        link(&pair(key));
    }
    for key in keys::DIRECTIONS {
        link(&format!("rtt = \"200ms\", {}", pair(key)));
    }
    for parameter in select(|one| one.is_of_link() && one != Parameter::LINK) {
        let rtt = if parameter == Parameter::RTT {
            ""
        } else {
            "rtt = \"200ms\", "
        };
        link(&format!("{rtt}{}", example(parameter)));
    }
    for parameter in select(|one| !one.is_of_link()) {
        let measure = format!("[{{ id = \"growth\", {} }}]", example(parameter));
        study(&[("measure", &measure)]);
    }
    for key in keys::MEASURE {
        study(&[("measure", &format!("[{}]", table(keys::MEASURE, key, "")))]);
    }
    let cell = |cell: &str| {
        let measure = format!("[{{ id = \"growth\", cell = [{cell}] }}]");
        study(&[("measure", &measure)]);
    };
    for key in keys::CELL {
        cell(&table(keys::CELL, key, ""));
    }
    for key in keys::INLINE_LINK {
        cell(&format!("{{ link = {{ rtt = \"1ms\", {} }} }}", pair(key)));
    }
}

fn populations() {
    let population = |keys: &str| {
        study(&[
            ("link", ""),
            ("measure", "[{ id = \"growth\" }]"),
            ("population", &format!("{{ {keys} }}")),
        ]);
    };
    for key in keys::POPULATION {
        match key.name {
            // It names a file.
            "profile" => {}
            "joint" => population(&pair(key)),
            _ => population(&format!("rtt = \"30ms\", {}", pair(key))),
        }
    }
    for key in keys::DISTRIBUTION {
        let distribution = match key.name {
            "values" => format!("rtt = \"30ms\", rate = {{ {} }}", pair(key)),
            "weights" => {
                let values = named(keys::DISTRIBUTION, "values");
                format!("rtt = \"30ms\", rate = {{ {values}, {} }}", pair(key))
            }
            name => {
                let more = match name {
                    "median" => named(keys::DISTRIBUTION, "p95"),
                    "p95" => named(keys::DISTRIBUTION, "median"),
                    "least" | "most" => named(keys::DISTRIBUTION, "mean"),
                    _ => String::new(),
                };
                format!("rtt = {}", table(&[], key, &more))
            }
        };
        population(&distribution);
    }
}

fn questions() {
    for key in keys::FIGURE {
        study(&[("figure", &format!("[{}]", table(keys::FIGURE, key, "")))]);
    }
    let known = [keys::PUBLISHED, keys::QUESTION].concat();
    for key in &known {
        let more = match key.name {
            "by" => named(keys::PUBLISHED, "rows"),
            "rows" => named(keys::PUBLISHED, "by"),
            "values" => String::new(),
            _ => named(keys::PUBLISHED, "values"),
        };
        study(&[("published", &format!("[{}]", table(&known, key, &more)))]);
    }
    for key in keys::CLAIM {
        study(&[("claim", &format!("[{}]", table(keys::CLAIM, key, "")))]);
    }
    let claim = |check: &str| {
        let claim = format!("[{{ id = \"small\", text = \"It is\", check = [{check}] }}]");
        study(&[("claim", &claim)]);
    };
    let known = [keys::CHECK, keys::QUESTION].concat();
    for key in &known {
        claim(&table(&known, key, ""));
    }
    let known = [keys::NUMBER, keys::QUESTION].concat();
    for key in &known {
        let number = format!("{{ later = {} }}", table(&known, key, ""));
        study(&[
            ("answer", "\"It comes {later} later\""),
            ("number", &number),
        ]);
    }
    let words = QUANTITIES.iter().map(|word| word.name);
    for what in words.chain(MessageSize::all().map(MessageSize::name)) {
        claim(&format!(
            "{{ measure = \"growth\", arm = \"pq\", what = \"{what}\", than = {{ loss = \"0%\" }}, of = \"classical\", \
             within = \"..10\" }}"
        ));
    }
}

fn searches() {
    for key in keys::SEARCH {
        let search = table(keys::SEARCH, key, "data = \"1KiB\"");
        study(&[("search", &format!("[{search}]"))]);
    }
    for key in keys::SEARCH_PUBLISHED {
        let published = table(keys::SEARCH_PUBLISHED, key, "");
        let more = format!("data = \"1KiB\", published = [{published}]");
        let search = table(keys::SEARCH, &keys::SEARCH[0], &more);
        study(&[("search", &format!("[{search}]"))]);
    }
}

const PQ: &str = "{ tls = \"SecP256r1MLKEM768/ml-dsa-65\" }";

/// Reads a study, in which these keys are otherwise than usual, or not at all.
fn study(changes: &[(&str, &str)]) {
    let arms = format!("{{ classical = {{ tls = \"secp256r1/rsa-2048\" }}, pq = {PQ} }}");
    let mut parts = vec![
        ("arm", arms.as_str()),
        ("link", "{ lte-m = { rtt = \"200ms\" } }"),
        ("measure", "[{ id = \"growth\", data = \"50KiB\" }]"),
        (
            "figure",
            "[{ id = \"fig10\", measure = \"growth\", plot = \"increase\" }]",
        ),
    ];
    for (name, value) in changes {
        parts.retain(|(known, _)| known != name);
        parts.push((name, value));
    }
    parts.retain(|(_, value)| !value.is_empty());
    let lines = parts
        .iter()
        .map(|(name, value)| format!("{name} = {value}\n"));
    reads(&lines.collect::<String>());
}

fn reads(text: &str) {
    if let Err(error) = Study::parse(text, Path::new("study.toml")) {
        panic!("{error}\n{text}");
    }
}

/// A table with a key, with all that must be there, and with more.
fn table(known: &[Key], key: &Key, more: &str) -> String {
    let must = known
        .iter()
        .filter(|one| matches!(one.without, Without::Must));
    let must = must.filter(|one| one.name != key.name).map(pair);
    let more = (!more.is_empty()).then(|| more.to_owned());
    let pairs: Vec<_> = must.chain([pair(key)]).chain(more).collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// The example of a key that is known by name.
fn named(known: &[Key], name: &str) -> String {
    pair(known.iter().find(|key| key.name == name).unwrap())
}

fn pair(key: &Key) -> String {
    format!("{} = {}", key.name, key.example)
}
