//! `docs/study.md`: all keys of a study file, by the tables that it is read by.

#[cfg(test)]
mod tests;

use super::grid::usual;
use super::keys::{self, Key, QUANTITIES, Takes, Without};
use crate::{
    ArmKey, Cell, Choice, Lists, MessageSize, Metric, Parameter, ParameterValue, Plot, Preset,
    Reading,
};

/// A study that has most of what there is.
const EXAMPLE: &str = r#"connections = 1000

[arm.classical]              # the first arm is the baseline
tls = "secp256r1/rsa-2048"
[arm.pq]
tls = "X25519MLKEM768/ml-dsa-44"

[link.lte-m]
rtt = "200ms"
rate = "1mbit"
loss = ["0%", "3%"]          # lists make a grid

[[measure]]
id = "growth"
initcwnd = 20
data = ["0KiB", "50KiB"]

[[figure]]
id = "fig10"
measure = "growth"
plot = "increase"
x = "data"
facet = "loss"
"#;

/// All keys of a study file, as a page of Markdown.
pub fn reference() -> String {
    let mut page = Page::default();
    page.text(
        "# Study files\n\n\
         The code writes this page from the tables that it reads studies by (see CONTRIBUTING.md): all keys that there are.\n\n\
         `lastbyte run STUDY.toml -o FOLDER` measures a study, `--dry-run` tells its cells, connections and expected time, \
         and `lastbyte report FOLDER` makes a page of it. An unknown key, or a value that can't be, is told with its line \
         and the hint. A study is TOML:",
    );
    page.text(&format!("```toml\n{EXAMPLE}```"));
    page.text(
        "Times, rates, sizes and shares are texts with their unit: `\"35ms\"`, `\"1mbit\"`, `\"50KiB\"`, `\"3%\"`. Where a \
         key may be absent, the third column has what holds then. Below *must*, it must be there.",
    );
    overall(&mut page);
    networks(&mut page);
    populations(&mut page);
    questions(&mut page);
    searches(&mut page);
    page.0
}

fn overall(page: &mut Page) {
    page.section("Above all tables", "", keys::TOP);
    page.section(
        "Sampling",
        "Above all tables for the whole study; in a `[[measure]]` or a `[[search]]` for it alone. `\"until ±2%\"` looks at \
         a cell after `least` connections, after twice as many each time, and at last after `most`; intervals allow for \
         having looked more than once.",
        keys::SAMPLING,
    );
    page.text("`connections = { until = \"±2%\" }` may have bounds:");
    page.keys(keys::UNTIL);
    page.section("`[arm.NAME]`", "", keys::ARM);
    page.text(
        "Behind the chain of an arm stand keys with a value, in any order: `/intermediates=2/scts=2`. Those of the chain have a \
         form for the client's, with `client_` in front. [arms.md](arms.md) tells what they mean.",
    );
    page.arm_keys();
}

fn networks(page: &mut Page) {
    page.text(
        "## `[link.NAME]`\n\n\
         What lies between client and server. A list makes a link of each of its values; later keys of this table change \
         faster than those before them, and those of `forward` and `backward` fastest. Those have all of these keys but `network` and `rtt`.",
    );
    page.keys(keys::NETWORK);
    page.parameters(&select(|one| one.is_of_link() && one != Parameter::LINK));
    page.keys(&[keys::DELAY, keys::DIRECTIONS].concat());
    page.section(
        "`[[measure]]`",
        "Arms over cells: those of its links in their order, and of each list below. Later keys change faster. The keys of \
         [Sampling](#sampling) can stand here, too.",
        keys::MEASURE,
    );
    page.parameters(&select(|one| !one.is_of_link()));
    page.text("`[[measure.cell]]` has the same parameters, and");
    page.keys(keys::CELL);
    page.text("A link that stands there as a table has the keys of a `[link.NAME]`, and");
    page.keys(keys::INLINE_LINK);
    page.text("### Presets\n\nWhat goes with a preset, unless it is said apart:");
    let [network, published] = [Preset::Network, Preset::Published2024].map(Cell::of);
    let settings = select(Parameter::goes_with_preset).into_iter();
    page.table(
        &["", "`network`", "`published-2024`"],
        settings.map(|one| {
            vec![
                code(one.name()),
                code(&one.of(&network)),
                code(&one.of(&published)),
            ]
        }),
    );
}

fn populations(page: &mut Page) {
    let drawn: Vec<_> = Parameter::drawable().map(|one| code(one.name())).collect();
    page.section(
        "`[population]`",
        &format!(
            "What each connection draws, in every arm and cell alike, in place of a grid. It can draw {}: a value alone is \
             one for all, a table says how it is drawn. What is not named here is a grid as above.",
            listed(&drawn, "and")
        ),
        keys::POPULATION,
    );
    page.text(
        "A distribution, such as `rtt = { median = \"30ms\", p95 = \"120ms\" }`, has one of `values`, `uniform`, `median`, \
         `mean` and `percentiles`, and what goes with it:",
    );
    page.keys(keys::DISTRIBUTION);
}

fn questions(page: &mut Page) {
    page.section(
        "`[[figure]]`",
        "Figures can be described after a run, too: `lastbyte report --study STUDY.toml`.",
        keys::FIGURE,
    );
    page.text("### Plots");
    let plots = Plot::ALL.into_iter();
    page.table(
        &["plot", "what it draws", "takes besides what all take"],
        plots.map(|plot| {
            let keys: Vec<String> = plot.takes().iter().map(|key| code(key)).collect();
            vec![code(plot.name()), plot.doc().to_owned(), keys.join(" ")]
        }),
    );
    page.text("### Times");
    let metrics = Metric::ALL.into_iter();
    page.table(
        &["metric", "from when to when"],
        metrics.map(|metric| vec![code(metric.name()), metric.doc().to_owned()]),
    );
    page.section(
        "`[[published]]`",
        "Numbers of others, each of one cell or of several that are pooled, beside ours: `values` alone, or `by` and `rows`. \
         A number agrees with ours when it is as near as `within` says, or where another run of as many connections could \
         as well have been.",
        &[keys::PUBLISHED, keys::QUESTION].concat(),
    );
    page.text("### Quantities");
    let words = QUANTITIES.iter();
    let words = words.map(|word| vec![code(word.name), word.unit.to_owned(), word.doc.to_owned()]);
    let messages = MessageSize::all().map(|size| {
        let doc = match size {
            MessageSize::One(message) => message.doc().to_owned(),
            MessageSize::ServerMessages => {
                let names = size.messages().into_iter();
                let names: Vec<_> = names.map(|message| code(message.name())).collect();
                format!("{} together", listed(&names, "and"))
            }
        };
        vec![code(size.name()), "bytes".to_owned(), doc]
    });
    page.table(&["what", "unit", ""], words.chain(messages));
    page.section(
        "`[[claim]]`",
        "A claim holds when the whole interval of every number lies within its bounds.",
        keys::CLAIM,
    );
    page.text("`[[claim.check]]` has `measure` to `of` as `[[published]]`, and");
    page.keys(keys::CHECK);
    page.section(
        "`[number.NAME]`",
        "What fills the place `{NAME}` of the answer, with its interval: the number of one cell, or the least and the most of \
         several. The answer stands where each number bears it out: what is an increase, a slowdown, later or sooner is more \
         than zero with its whole interval, and all else within its bounds. Where one does not, the answer is not told as one; \
         what stands in its place says which number that is. `[number.NAME]` has `measure` to `of` as `[[published]]`, and",
        keys::NUMBER,
    );
}

fn searches(page: &mut Page) {
    page.section(
        "`[[search]]`",
        "Pads the chains of its arms until a time steps. Between two neighbouring sizes whose medians differ by more than \
         half an RTT, it halves the way until they are a byte apart. Where packets are lost or delayed at random, it stays \
         with the sizes of the first look, of which there should be many, with many connections each, and fits steps to \
         them. The parameters of a `[[measure]]` can stand here, and the keys of [Sampling](#sampling) but `cpu`.",
        keys::SEARCH,
    );
    page.text("`[[search.published]]`:");
    page.keys(keys::SEARCH_PUBLISHED);
}

fn select(is_one: fn(Parameter) -> bool) -> Vec<Parameter> {
    let all = Parameter::ALL.into_iter();
    all.filter(|parameter| is_one(*parameter)).collect()
}

/// A page of Markdown.
#[derive(Default)]
struct Page(String);

impl Page {
    /// A paragraph.
    fn text(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0 += text;
        self.0.push('\n');
    }

    fn section(&mut self, title: &str, text: &str, keys: &[Key]) {
        self.text(&format!("## {title}"));
        if !text.is_empty() {
            self.text(text);
        }
        self.keys(keys);
    }

    fn keys(&mut self, keys: &[Key]) {
        self.table(
            &["key", "takes", "without it", "example", "what it says"],
            keys.iter().map(|key| {
                vec![
                    code(key.name),
                    takes(&key.takes),
                    match key.without {
                        Without::Must => "*must*".to_owned(),
                        Without::Holds(text) => text.to_owned(),
                    },
                    code(&format!("{} = {}", key.name, key.example)),
                    key.doc.to_owned(),
                ]
            }),
        );
    }

    fn arm_keys(&mut self) {
        let told = ArmKey::all().filter(|key| !key.is_of_client_chain());
        self.table(
            &["key of an arm", "takes", "without it", "what it says"],
            told.map(|key| {
                vec![
                    code(&format!("{}=", key.name())),
                    key.takes().to_owned(),
                    match key.usual() {
                        "" => String::new(),
                        usual => code(usual),
                    },
                    key.doc().to_owned(),
                ]
            }),
        );
    }

    fn parameters(&mut self, parameters: &[Parameter]) {
        self.table(
            &[
                "parameter",
                "takes, or lists of them",
                "without it",
                "example",
                "what it says",
            ],
            parameters.iter().map(|parameter| {
                vec![
                    code(parameter.name()),
                    reads(*parameter),
                    without(*parameter),
                    code(&example(*parameter)),
                    doc(*parameter).to_owned(),
                ]
            }),
        );
    }

    fn table(&mut self, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let titles: Vec<_> = titles.iter().map(|title| (*title).to_owned()).collect();
        let mut lines = vec![line(&titles), "|---".repeat(titles.len()) + "|"];
        lines.extend(rows.map(|cells| {
            let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
            line(&cells.collect::<Vec<_>>())
        }));
        self.text(&lines.join("\n"));
    }
}

fn takes(takes: &Takes) -> String {
    match takes {
        Takes::Words(text) => (*text).to_owned(),
        Takes::Name(names) => listed(&codes(&names()), "or"),
        Takes::Names(names) => format!("{}, or a list", listed(&codes(&names()), "or")),
    }
}

/// What a text of a parameter must be.
fn reads(parameter: Parameter) -> String {
    match (parameter.reading(), parameter.value(&unsaid())) {
        (Reading::Whole(range), _) if *range.end() == u32::MAX => {
            format!("whole numbers from {} on", range.start())
        }
        (Reading::Whole(range), _) => {
            format!("whole numbers from {} to {}", range.start(), range.end())
        }
        (Reading::Bytes(most), _) => format!("sizes up to {most}"),
        (Reading::Files, _) => "files, `DOWN:UP`, or `none`".to_owned(),
        (_, Some(ParameterValue::Time(_))) => "times".to_owned(),
        (_, Some(ParameterValue::Rate(_))) => "rates, `DOWN/UP`, or `unlimited`".to_owned(),
        (_, Some(ParameterValue::Loss(_))) => {
            "shares of packets, `5% in bursts of 4`, or `gemodel:...`".to_owned()
        }
        (_, Some(ParameterValue::Bytes(_))) => "sizes".to_owned(),
        (_, Some(ParameterValue::Count(_) | ParameterValue::Text(_)) | None) => "texts".to_owned(),
    }
}

/// What holds where nothing is said of a parameter.
fn without(parameter: Parameter) -> String {
    let usual = code(&parameter.of(&unsaid()));
    if parameter == Parameter::RTT {
        "*must*, or `delay`, or `network`".to_owned()
    } else if parameter.goes_with_preset() {
        format!("{usual}, or the preset's")
    } else {
        usual
    }
}

/// A cell of which a study says nothing.
fn unsaid() -> Cell {
    Cell {
        link: usual(),
        ..Cell::default()
    }
}

/// `data = ["0KiB", "50KiB"]`: what is usual on the command line, or goes with the other preset.
fn example(parameter: Parameter) -> String {
    let (text, lists) = match parameter.command_line() {
        None => (parameter.of(&unsaid()), &Lists::Refused),
        Some(known) => match known.choice {
            Choice::Usual(text) => (text.to_owned(), &known.lists),
            Choice::Presets => {
                let published = Cell::of(Preset::Published2024);
                (parameter.of(&published), &known.lists)
            }
        },
    };
    let quoted = |text: &str| match parameter.reading() {
        Reading::Whole(_) => text.to_owned(),
        _ => format!("{text:?}"),
    };
    let values: Vec<_> = match lists {
        Lists::Taken => text.split(',').map(quoted).collect(),
        Lists::Refused => vec![quoted(&text)],
    };
    match &values[..] {
        [value] => format!("{} = {value}", parameter.name()),
        values => format!("{} = [{}]", parameter.name(), values.join(", ")),
    }
}

/// What a parameter does. Further sentences are about the command line, and so is what is usual there.
fn doc(parameter: Parameter) -> &'static str {
    let help = parameter.command_line().map_or("", |known| known.help);
    let help = help.split_once(" [default").map_or(help, |(help, _)| help);
    help.split_once(". ").map_or(help, |(help, _)| help)
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn codes(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| code(name)).collect()
}

/// `a, b and c`
fn listed(words: &[String], and: &str) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} {and} {last}", words.join(", ")),
    }
}
