//! One small file of each kind that a report was about, with its right answer beside it: `scripts/corpus` makes them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{lastbyte, run};

#[test]
fn each_file_has_its_right_answer() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut answers: Vec<_> = fs::read_dir(&corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    answers.retain(|path| path.extension().is_some_and(|end| end == "json"));
    answers.sort();
    assert!(answers.len() >= 15, "{answers:?}");
    let mut wrong = Vec::new();
    for path in answers {
        let folder = path.with_extension("");
        let answer = fs::read(&path).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let texts = |key: &str| -> Vec<String> {
            let texts = answer[key].as_array().unwrap().iter();
            texts
                .map(|text| text.as_str().unwrap().to_owned())
                .collect()
        };
        let mut command = lastbyte(texts("arguments"));
        let ended = run(command.current_dir(&folder));
        // Lines are as wide as the screen.
        let words = format!("{} {}", ended.stdout, ended.stderr);
        let said = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = folder.file_name().unwrap().display().to_string();
        if ended.code != answer["code"].as_i64().map(|code| code as i32) {
            wrong.push(format!("{name}: exit code {:?}: {said}", ended.code));
        }
        for text in texts("says") {
            if !said.contains(&text) {
                wrong.push(format!("{name}: does not say {text:?}: {said}"));
            }
        }
        for text in texts("never") {
            if said.contains(&text) {
                wrong.push(format!("{name}: says {text:?}: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
