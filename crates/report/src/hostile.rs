//! Results that somebody has made up, sealed as ours are: whatever they say is shown and does nothing, or one line tells
//! what can't be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::path::Path;

use lastbyte_link::is_hidden;
use proptest::prelude::*;
use proptest::sample::Index;
use pulldown_cmark::{Event, Options, Parser, Tag};
use roxmltree::Document;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::study::{Findings, figures, page, share};
use super::{
    Detail, Samples, Screen, csv, for_terminal, json as document, json_for_terminal, junit,
    markdown, table,
};
use lastbyte_results::arbitrary::{row, text};
use lastbyte_results::fixtures::{environment, run_folder, sample};
use lastbyte_results::rows::{Batch, Origin, ParquetWriter};
use lastbyte_results::{Dataset, Environment, Row, SampleKey, Saved, Validity};
use lastbyte_study::{EngineName, Study};

const GRID: &str = r#"connections = 12
[arm.old]
tls = "secp256r1/rsa-2048"
[arm.new]
tls = "SecP256r1MLKEM768/ml-dsa-65"
[link.path]
rtt = "35ms"
rate = "1gbit"
loss = ["0%", "1%"]
[[measure]]
id = "growth"
data = ["0KiB", "50KiB"]
[[figure]]
id = "fig1"
measure = "growth"
plot = "increase"
x = "data"
facet = "loss"
beside = ["arithmetic", "rules-of-thumb"]
[[figure]]
id = "fig2"
measure = "growth"
plot = "percentiles"
metric = "handshake"
where = { data = "0KiB" }
facet = "loss"
[[figure]]
id = "fig3"
measure = "growth"
plot = "cdf"
where = { data = "50KiB" }
pool = ["loss"]
[[figure]]
id = "tab1"
measure = "growth"
plot = "table"
where = { data = "50KiB" }
"#;

const PAGES: &str = r#"connections = 4
[arm.a]
tls = "x25519/ecdsa-p256/server=node"
[arm.b]
tls = "X25519MLKEM768/ecdsa-p256/server=node"
[link.l]
rtt = "35ms"
[[measure]]
id = "m"
page = "median-2024"
"#;

const POPULATION: &str = r#"connections = 20
[population]
rtt = { values = ["5ms", "150ms"], weights = [10, 25] }
rate = { values = ["10mbit", "50mbit"], weights = [20, 50] }
data = { values = ["0KiB", "20KiB"], weights = [20, 50] }
resumes = "46%"
[arm.old]
tls = "X25519MLKEM768/ecdsa-p256"
[arm.new]
tls = "X25519MLKEM768/ml-dsa-44"
[[measure]]
id = "users"
"#;

const STUDIES: [&str; 3] = [GRID, PAGES, POPULATION];

/// What is made up of an honest run.
#[derive(Clone, Debug)]
struct Lies {
    study: &'static str,
    /// Rows in the place of others, and whether they keep their index.
    rows: Vec<(Index, Index, Row, bool)>,
    /// Rows that are there twice, or not at all.
    twice: Vec<(Index, Index)>,
    missing: Vec<(Index, Index)>,
    /// In the place of texts and numbers of what is said of all.
    texts: Vec<(Index, String)>,
    numbers: Vec<(Index, Value)>,
    environment: [String; 3],
    validity: Option<String>,
}

fn lies() -> impl Strategy<Value = Lies> {
    let place = || (any::<Index>(), any::<Index>());
    let numbers = prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(-1)),
        Just(json!(u32::MAX)),
        Just(json!(1_u64 << 53)),
        Just(json!(i64::MAX)),
        Just(json!(u64::MAX)),
        Just(json!(1e300)),
    ];
    (
        prop::sample::select(STUDIES.to_vec()),
        prop::collection::vec(
            (
                any::<Index>(),
                any::<Index>(),
                row(),
                prop::bool::weighted(0.97),
            ),
            0..30,
        ),
        prop::collection::vec(place(), 0..2),
        prop::collection::vec(place(), 0..2),
        prop::collection::vec((any::<Index>(), text()), 0..4),
        prop::collection::vec((any::<Index>(), numbers), 0..2),
        [text(), text(), text()],
        prop::option::of(text()),
    )
        .prop_map(
            |(study, rows, twice, missing, texts, numbers, environment, validity)| Lies {
                study,
                rows,
                twice,
                missing,
                texts,
                numbers,
                environment,
                validity,
            },
        )
}

impl Lies {
    fn environment(&self) -> Environment {
        let [kernel, version, word] = self.environment.clone();
        Environment {
            kernel,
            versions: [
                ("openssl".to_owned(), version.clone()),
                (version, word.clone()),
            ]
            .into(),
            command: vec!["lastbyte".to_owned(), word],
            ..environment()
        }
    }

    /// Writes a file of all rows. Of a folder, the study is beside it.
    fn write(&self, path: &Path, study: &Study, experiment: Option<String>) {
        let mut writer = ParquetWriter::new(File::create(path).unwrap()).unwrap();
        let mut headers = Vec::new();
        for (measure, of) in study.measures.iter().enumerate() {
            let experiment = &of.experiment;
            let arms = 0..experiment.arms.len();
            let places = (0..experiment.cells.len())
                .flat_map(|cell| arms.clone().map(move |arm| (cell, arm)));
            let places: Vec<_> = places.collect();
            for (number, (cell, arm)) in places.iter().copied().enumerate() {
                let is_here = |index: &Index| index.index(places.len()) == number;
                let mut sample = sample(experiment, cell, arm);
                for (_, at, row, keeps) in self.rows.iter().filter(|(of, ..)| is_here(of)) {
                    let place = at.index(sample.rows.len());
                    let honest = &mut sample.rows[place];
                    let index = if *keeps {
                        honest.index
                    } else {
                        row.exchange
                            .negotiated
                            .certificate_count()
                            .wrapping_mul(77_777)
                    };
                    *honest = Row {
                        index,
                        ..row.clone()
                    };
                }
                for (_, at) in self.twice.iter().filter(|(of, _)| is_here(of)) {
                    let place = at.index(sample.rows.len());
                    sample.rows.insert(place, sample.rows[place].clone());
                }
                for (_, at) in self.missing.iter().filter(|(of, _)| is_here(of)) {
                    sample.rows.remove(at.index(sample.rows.len()));
                }
                if let Some(reason) = self.validity.clone().filter(|_| number == 0) {
                    sample.engine.validity = Validity::Invalid(reason);
                }
                let origin = Origin {
                    study: &study.name,
                    measure: &of.id,
                    engine: EngineName::Virtual,
                };
                writer
                    .write(&Batch::new(origin, experiment, &sample).unwrap())
                    .unwrap();
                let mut header = json!({
                    "connections": sample.rows.len(),
                    "chain_sha256": sample.chain_digest,
                    "report": sample.engine,
                });
                let key = serde_json::to_value(SampleKey { measure, cell, arm }).unwrap();
                header
                    .as_object_mut()
                    .unwrap()
                    .extend(key.as_object().unwrap().clone());
                headers.push(header);
            }
        }
        let mut samples = Value::Array(headers);
        for (at, text) in &self.texts {
            let mut leaves = leaves(&mut samples, Value::is_string);
            let place = at.index(leaves.len());
            *leaves[place] = Value::String(text.clone());
        }
        for (at, number) in &self.numbers {
            let mut leaves = leaves(&mut samples, Value::is_number);
            let place = at.index(leaves.len());
            *leaves[place] = number.clone();
        }
        let mut about = json!({
            "schema": "lastbyte.rows/1",
            "study": study.name,
            "engine": "virtual",
            "samples": samples,
            "environments": [self.environment()],
        });
        if let Some(experiment) = experiment {
            about["experiment"] = Value::String(experiment);
        }
        writer.finish(&about).unwrap();
    }
}

fn leaves(value: &mut Value, is_meant: fn(&Value) -> bool) -> Vec<&mut Value> {
    match value {
        Value::Array(values) => (values.iter_mut())
            .flat_map(|value| leaves(value, is_meant))
            .collect(),
        Value::Object(values) => (values.values_mut())
            .flat_map(|value| leaves(value, is_meant))
            .collect(),
        leaf if is_meant(leaf) => vec![leaf],
        _ => Vec::new(),
    }
}

/// One line that moves no cursor.
fn assert_one_line(error: &impl ToString) {
    let told = for_terminal(&error.to_string());
    assert!(!told.is_empty() && !told.contains(is_hidden), "{told:?}");
}

/// What `lastbyte report` makes of findings, and `lastbyte compare` of each summary.
fn assert_harmless(findings: &Findings) {
    let html = page(findings, Some("https://example.com/page.html"));
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    for markup in ["<script>boo", "<img src=x", "]]><b>", "onerror=boo>"] {
        assert!(!html.contains(markup), "{markup}");
    }
    let is_foreign = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(
        !html.contains(is_foreign),
        "{:?}",
        html.find(is_foreign)
            .map(|at| &html[at.saturating_sub(90)..at + 20])
    );
    for file in figures(findings).unwrap().0 {
        assert_table(&file.csv);
        for (_, drawing) in file.drawings {
            Document::parse(&drawing.svg).unwrap();
        }
    }
    share(findings).unwrap();
    for summary in &findings.summaries {
        for detail in [Detail::Answer, Detail::Everything] {
            let shown = for_terminal(&table(summary, Screen::PLAIN, detail));
            let is_hidden = |c| is_hidden(c) && c != '\n';
            assert!(!shown.contains(is_hidden), "{shown:?}");
        }
        assert_table(&csv(summary));
        let told = document(summary, &findings.environment);
        serde_json::from_str::<Value>(&told).unwrap();
        let told = json_for_terminal(&told);
        serde_json::from_str::<Value>(&told).unwrap();
        let is_hidden = |c| is_hidden(c) && c != '\n';
        assert!(!told.contains(is_hidden));
        let thresholds = ["ttlb.p50 > 5%", "handshake.p90 > 1s"].map(|text| text.parse().unwrap());
        for samples in [Samples::MustBeValid, Samples::AsTheyAre] {
            let xml = junit(summary, &findings.environment, &thresholds, &[], samples);
            Document::parse(&xml).unwrap();
        }
        assert_markdown(&markdown(summary));
    }
}

fn assert_table(text: &str) {
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    for record in reader.records() {
        // A spreadsheet computes nothing of it.
        for field in &record.unwrap() {
            let computes = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(
                !computes || field.parse::<f64>().is_ok(),
                "{field:?}: {text}"
            );
        }
    }
}

fn assert_markdown(text: &str) {
    for event in Parser::new_ext(text, Options::all()) {
        let told = format!("{event:?}");
        match event {
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Start(Tag::Link { .. } | Tag::Image { .. }) => {
                assert!(!told.contains("boo"), "{told}");
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn lies_are_shown_and_do_nothing_or_are_refused_in_one_line(lies in lies()) {
        let folder = TempDir::new().unwrap();
        let run = folder.path().join("run");
        run_folder(&run, lies.study, &[]);
        let study = Dataset::open(&run).unwrap().study;
        let rows = run.join("rows.parquet");
        fs::remove_file(&rows).unwrap();
        lies.write(&rows, &study, None);
        match Findings::read(&Dataset::open(&run).unwrap()) {
            Ok(findings) => assert_harmless(&findings),
            Err(error) => assert_one_line(&error),
        }
        // The same without a folder.
        let alone = folder.path().join("rows.parquet");
        lies.write(&alone, &study, Some(study.to_toml()));
        match Saved::open(&alone, "rows") {
            Ok(saved) => {
                let findings = Findings::of(saved.experiment.clone(), saved.samples(), &saved.environment);
                assert_harmless(&findings);
            }
            Err(error) => assert_one_line(&error),
        }
    }
}
