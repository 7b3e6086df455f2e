//! Rows within what is read, of which nothing fits the rest, for property tests: what each column can hold, given back.

use lastbyte_sizes::names;
use proptest::option;
use proptest::prelude::*;

use super::rows::{COLUMNS, Column, Kind, Value};
use super::{Measurement, PageLoad, Row};

/// Any row that a file can hold.
pub fn row() -> impl Strategy<Value = Row> {
    fields().prop_map(|fields| {
        let mut row = Row::default();
        for (column, values) in restored().zip(fields) {
            let given = values.into_iter().flatten().find_map(|value| {
                let mut with = row.clone();
                column.give_back(&mut with, value).map(|()| with)
            });
            row = given.unwrap_or(row);
        }
        // Of which nothing was seen, it can't be told from a transfer.
        if row.load() == Some(&PageLoad::default()) {
            row.measurement = Measurement::Transfer;
        }
        row
    })
}

fn restored() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.is_restored())
}

/// What each of them may be given; `None` where it is left absent.
fn fields() -> Vec<BoxedStrategy<Option<Vec<Value<'static>>>>> {
    restored()
        .map(|column| option::of(field(column)).boxed())
        .collect()
}

/// A value for it, and others to take where the column does not hold that.
fn field(column: &Column) -> BoxedStrategy<Vec<Value<'static>>> {
    match column.kind {
        Kind::Text => {
            let own = column.doc.split('`').skip(1).step_by(2);
            let named = (0..=u16::MAX).filter_map(|code| match column.name {
                "group" => names::group(code),
                "cipher_suite" => names::cipher_suite(code),
                "signature" | "client_signature" => names::signature_scheme(code),
                _ => None,
            });
            let words: Vec<String> = own.chain(named).map(str::to_owned).collect();
            let number = any::<u16>().prop_map(|code| code.to_string());
            let word = if words.is_empty() {
                text().boxed()
            } else {
                prop::sample::select(words).boxed()
            };
            (word, text(), number, any::<bool>())
                .prop_map(|(word, text, number, is_text)| {
                    let values = if is_text {
                        [text, word, number]
                    } else {
                        [number, word, text]
                    };
                    values.map(Value::from).to_vec()
                })
                .boxed()
        }
        // Times, numbers of all kinds, and a message's bytes each have a most of their own.
        Kind::Whole => prop_oneof![Just(0), Just(1), Just(1_u64 << 53), 0..=1_u64 << 53]
            .prop_map(|number| {
                [number, number >> 25, number >> 29]
                    .map(Value::from)
                    .to_vec()
            })
            .boxed(),
        Kind::Fraction => (0.0..=1.0)
            .prop_map(|number: f64| vec![number.into()])
            .boxed(),
        Kind::Truth => any::<bool>().prop_map(|truth| vec![truth.into()]).boxed(),
    }
}

/// Of any characters, and such as mean something to whoever shows them.
pub fn text() -> impl Strategy<Value = String> {
    let meant = [
        "<script>boo</script>",
        "]]><b>",
        "\"'><img src=x onerror=boo>",
        "\u{1b}[2J\u{1b}]0;boo\u{7}\u{9b}31m",
        "boo\r\nboo\0\u{8}",
        "| `boo` | [boo](javascript:boo) ![](http://boo.example)",
        "=1+boo()",
        "$(boo) `boo`; boo",
        "\u{202e}boo\u{2066}\u{200b}\u{feff}",
        "",
    ];
    prop_oneof![
        ".*".boxed(),
        prop::sample::select(meant.to_vec())
            .prop_map(str::to_owned)
            .boxed(),
    ]
}

/// Else property tests would not be about it.
#[cfg(test)]
#[test]
#[allow(clippy::unwrap_used)]
fn each_column_is_drawn() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut draw = || (row(), fields()).new_tree(&mut runner).unwrap().current();
    let drawn: Vec<_> = (0..100).map(|_| draw()).collect();
    for (place, column) in restored().enumerate() {
        let takes = |row: &Row, value: &Value<'static>| {
            column.give_back(&mut row.clone(), value.clone()).is_some()
        };
        let mut values = drawn.iter().flat_map(|(row, fields)| {
            let values = fields[place].iter().flatten();
            values.map(move |value| (row, value))
        });
        assert!(
            values.any(|(row, value)| takes(row, value)),
            "{}",
            column.name
        );
    }
}
