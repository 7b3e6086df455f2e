//! `lastbyte stacks`.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use lastbyte_pki::KeyAlgorithm;
use lastbyte_tls::observer::Side;
use lastbyte_tls::{Capabilities, Feature, Group, StackName, capabilities, version};

use super::{Failure, print, print_document};
use lastbyte::lab::delivers;
use lastbyte::study::Delivery;

#[derive(Debug, Args)]
pub(super) struct Stacks {
    /// How it is reported: text, or markdown as in the manual
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Markdown,
}

impl Stacks {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let all = capabilities();
        match self.format {
            Format::Text => print(&text(&all)),
            Format::Markdown => print_document(&page(&all)),
        }
    }
}

/// One thing that stacks differ in, and what each of them has to say of it.
struct Row {
    what: String,
    of_stack: Vec<String>,
}

fn text(all: &[Capabilities]) -> String {
    let mut out = String::new();
    for side in [Side::Client, Side::Server] {
        for stack in of_side(all, side) {
            let version = version(stack.stack).unwrap_or_default();
            // Printing into memory does not fail.
            let _ = writeln!(out, "{} {} ({version})", stack.stack, title(side));
            for Row { what, of_stack } in rows(&[stack]) {
                let _ = writeln!(out, "    {what}: {}", of_stack.concat());
            }
        }
    }
    for absent in StackName::ALL
        .into_iter()
        .filter(|stack| version(*stack).is_none())
    {
        let _ = writeln!(
            out,
            "{absent} is not built in: build lastbyte with --features {absent}"
        );
    }
    out
}

/// A page of the manual.
fn page(all: &[Capabilities]) -> String {
    let mut out = "# What each stack can do\n\n\
        Made by `lastbyte stacks --format markdown`, which asks the same checks that an arm has to \
        pass. Whatever a stack can't do is an error before anything is measured.\n"
        .to_owned();
    for side in [Side::Client, Side::Server] {
        let stacks = of_side(all, side);
        let names = stacks.iter().map(|stack| format!("`{}`", stack.stack));
        let names: Vec<_> = names.collect();
        let lines = "---|".repeat(1 + stacks.len());
        let _ = write!(
            out,
            "\n## As a {}\n\n| | {} |\n|{lines}\n",
            title(side),
            names.join(" | ")
        );
        let versions = stacks
            .iter()
            .map(|stack| version(stack.stack).unwrap_or_default().to_string());
        let versions: Vec<_> = versions.collect();
        let version = Row {
            what: "version".to_owned(),
            of_stack: versions,
        };
        for Row { what, of_stack } in [version].into_iter().chain(rows(&stacks)) {
            let _ = writeln!(out, "| {what} | {} |", of_stack.join(" | "));
        }
    }
    out.push_str(
        "\nGroups are those that are negotiated in one round trip, with a key share for that group \
         alone. Sizes are bytes of the TLS message, its header included.\n",
    );
    out
}

fn title(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

fn of_side(all: &[Capabilities], side: Side) -> Vec<&Capabilities> {
    all.iter().filter(|stack| stack.side == side).collect()
}

fn rows(stacks: &[&Capabilities]) -> Vec<Row> {
    let row = |what: &str, tell: &dyn Fn(&Capabilities) -> String| Row {
        what: what.to_owned(),
        of_stack: stacks.iter().map(|stack| tell(stack)).collect(),
    };
    let mut rows = vec![row("keys", &|stack| keys(&stack.key_algorithms))];
    for alike in alike(stacks) {
        rows.push(row(&format!("groups with {}", keys(&alike)), &|stack| {
            groups(&groups_with(stack, alike.first()))
        }));
    }
    rows.push(row("two key shares", &|stack| {
        shares(&stack.two_key_shares)
    }));
    for feature in Feature::ALL {
        rows.push(row(feature.name(), &|stack| {
            yes_or_no(stack.features.contains(&feature))
        }));
    }
    for (delivery, words) in Delivery::ways() {
        rows.push(row(&words, &|stack| {
            yes_or_no(delivers(stack.stack, stack.side, &delivery))
        }));
    }
    rows.push(row("most tickets", &|stack| stack.max_tickets.to_string()));
    rows.push(row("largest Certificate", &|stack| {
        stack.max_certificate_message.to_string()
    }));
    rows
}

fn yes_or_no(can: bool) -> String {
    (if can { "yes" } else { "no" }).to_owned()
}

/// The key algorithms, those together with which every stack has the same groups.
fn alike(stacks: &[&Capabilities]) -> Vec<Vec<KeyAlgorithm>> {
    let all_groups = |key: &KeyAlgorithm| -> Vec<_> {
        let stacks = stacks.iter();
        stacks.map(|stack| groups_with(stack, Some(key))).collect()
    };
    let mut alike: Vec<Vec<KeyAlgorithm>> = Vec::new();
    for key in KeyAlgorithm::ALL {
        let first = |known: &&mut Vec<KeyAlgorithm>| known.first().map(all_groups);
        match alike
            .iter_mut()
            .find(|known| first(known) == Some(all_groups(&key)))
        {
            Some(known) => known.push(key),
            None => alike.push(vec![key]),
        }
    }
    alike
}

fn groups_with(stack: &Capabilities, key: Option<&KeyAlgorithm>) -> Vec<Group> {
    let found = stack.groups.iter().find(|(known, _)| Some(known) == key);
    found.map(|(_, groups)| groups.clone()).unwrap_or_default()
}

fn groups(groups: &[Group]) -> String {
    match groups {
        [] => "none".to_owned(),
        groups if groups == Group::ALL => "all".to_owned(),
        groups => groups
            .iter()
            .map(Group::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Neighbours in one word: `ecdsa-p256 to ml-dsa-87`.
fn keys(keys: &[KeyAlgorithm]) -> String {
    let place = |key: &KeyAlgorithm| KeyAlgorithm::ALL.iter().position(|known| known == key);
    let mut spans: Vec<(KeyAlgorithm, KeyAlgorithm)> = Vec::new();
    for &key in keys {
        match spans.last_mut() {
            Some((_, last)) if place(last).map(|last| last + 1) == place(&key) => *last = key,
            _ => spans.push((key, key)),
        }
    }
    let span = |(first, last): &(KeyAlgorithm, KeyAlgorithm)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first} to {last}")
        }
    };
    match keys {
        keys if keys == KeyAlgorithm::ALL => "all".to_owned(),
        _ => spans.iter().map(span).collect::<Vec<_>>().join(", "),
    }
}

fn shares(pairs: &[[Group; 2]]) -> String {
    match pairs {
        [] => "none".to_owned(),
        pairs if pairs.len() == Group::ALL.len() * (Group::ALL.len() - 1) => "any".to_owned(),
        pairs => {
            let pair = |[first, second]: &[Group; 2]| format!("{first}+{second}");
            pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_in_one_word() {
        use KeyAlgorithm::*;
        assert_eq!(keys(&KeyAlgorithm::ALL), "all");
        assert_eq!(keys(&[EcdsaP256]), "ecdsa-p256");
        assert_eq!(
            keys(&[EcdsaP256, EcdsaP384, Rsa2048]),
            "ecdsa-p256 to rsa-2048"
        );
        assert_eq!(
            keys(&[EcdsaP256, Rsa2048, MlDsa87]),
            "ecdsa-p256, rsa-2048, ml-dsa-87"
        );
    }

    /// With all stacks, that page is this command's.
    #[cfg(all(feature = "rustls", feature = "s2n-tls"))]
    #[test]
    fn the_manual_is_up_to_date() {
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stacks.md");
        let manual = std::fs::read_to_string(manual).unwrap();
        assert_eq!(
            manual,
            page(&capabilities()),
            "run `cargo run --release --all-features -- stacks --format markdown > docs/stacks.md`"
        );
    }
}
