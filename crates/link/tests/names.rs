//! What is shown of names that others have chosen.

use lastbyte_link::{is_hidden, visible};

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
