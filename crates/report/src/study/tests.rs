#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use insta::assert_snapshot;
use percent_encoding::percent_decode_str;
use tempfile::TempDir;

use super::command::commands;
use super::verdict::{Agreement, Verdict, check_claims, compare, prediction};
use super::{Drawing, Findings, automatic, figures, page, share};
use lastbyte_results::fixtures::{CLASSICAL, HYBRID, run_folder};
use lastbyte_results::{Dataset, Estimate, Interval, Validity};
use lastbyte_study::{Arm, Cell, EngineName, Plot, Study};

pub(super) const MEASURED: &str = r#"connections = 100
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
data = ["0KiB", "50KiB", "200KiB"]
"#;

const DRAWN: &str = r#"
[[figure]]
id = "fig1"
measure = "growth"
plot = "increase"
x = "data"
facet = "loss"
beside = ["arithmetic", "rules-of-thumb"]
[[figure]]
id = "fig2"
title = "A < B & C"
measure = "growth"
plot = "percentiles"
metric = "handshake"
where = { data = "0KiB" }
facet = "loss"
[[figure]]
id = "fig3"
measure = "growth"
plot = "cdf"
where = { data = "200KiB" }
pool = ["loss"]
[[figure]]
id = "tab1"
measure = "growth"
plot = "table"
where = { data = "50KiB" }

[[published]]
source = "Table I"
figure = "tab1"
measure = "growth"
arm = "new"
what = "increase"
metric = "handshake"
by = ["loss", "data"]
rows = [["0%", "0KiB", 50, 50, 50], ["1%", "0KiB", 5, 5, 5]]
cause = "Nobody knows."

[[claim]]
id = "one-more"
text = "One more round trip"
[[claim.check]]
measure = "growth"
arm = "new"
metric = "handshake"
what = "increase"
where = { data = "0KiB" }
within = "45..55"
[[claim]]
id = "none"
text = "No difference"
[[claim.check]]
measure = "growth"
arm = "new"
metric = "handshake"
percentiles = [50]
what = "increase"
where = { data = "0KiB" }
within = "..5"
[[claim]]
id = "late"
text = "The last connections are slow"
[[claim.check]]
measure = "growth"
arm = "old"
what = "slowdown"
than = { loss = "0%" }
where = { data = "200KiB", loss = "1%" }
within = "0..0"
"#;

pub(super) fn findings(text: &str, missing: &[(usize, usize, usize)]) -> Findings {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run");
    run_folder(&path, text, missing);
    Findings::read(&Dataset::open(&path).unwrap()).unwrap()
}

/// How many lines or areas of a class a drawing has, which may be in one path.
fn count(svg: &str, class: &str) -> usize {
    let of_class = svg
        .lines()
        .filter(|line| line.starts_with(&format!("<path class=\"{class}")));
    of_class.map(|line| line.matches('M').count()).sum()
}

fn described() -> Findings {
    findings(&format!("{MEASURED}{DRAWN}"), &[])
}

#[test]
fn a_page_needs_nothing_else() {
    let page = page(&described(), None);
    for figure in ["fig1", "fig2", "fig3", "tab1"] {
        assert!(page.contains(&format!("id=\"{figure}\"")), "{figure}");
    }
    let outside: Vec<_> = page
        .match_indices("http")
        .filter(|(at, _)| !page[*at..].starts_with("http://www.w3.org/2000/svg"))
        .collect();
    assert_eq!(outside, []);
    assert!(page.contains("A &lt; B &amp; C") && !page.contains("A < B"));
    assert!(page.contains("--initcwnd 10 --data 0B,50KiB,200KiB --connections 100"));
}

/// Kinds of traffic over networks are one table; where cells differ by more, each is a row.
#[test]
fn populations_are_in_one_table() {
    let section = |text: &str| {
        let page = page(&findings(text, &[]), None);
        let (_, section) = page.split_once("For whom it is noticeable").unwrap();
        section.split_once("</section>").unwrap().0.to_owned()
    };
    let several = MEASURED.replace(
        "data = [\"0KiB\", \"50KiB\", \"200KiB\"]",
        "traffic = [\"web\", \"video\"]",
    );
    let one = several.replace("[\"0%\", \"1%\"]", "\"0%\"");
    let matrix = section(&one);
    assert_eq!(matrix.matches("<table").count(), 3);
    let (matrix, rows) = matrix.split_once("</table>").unwrap();
    assert_eq!(matrix.matches("<th scope=\"row\">").count(), 2);
    // The made-up connections of the one are 35 ms later than those of the other.
    assert!(
        matrix.contains("<td class=\"same\" data-of=\"path\"><b>0 %</b>"),
        "{matrix}"
    );
    assert!(
        rows.contains("web, path") && rows.contains(" ms, "),
        "{rows}"
    );
    let rows = section(&several);
    assert_eq!(rows.matches("<table").count(), 2);
    assert_eq!(rows.matches("web, path").count(), 4);
    // One population alone has no such table.
    let alone = one.replace("[\"web\", \"video\"]", "\"web\"");
    let alone = page(&findings(&alone, &[]), None);
    assert!(!alone.contains("For whom it is noticeable"));
    assert!(alone.contains("Who waits longer: growth"));
}

#[test]
fn loads_that_were_kept_are_drawn() {
    let mut findings = described();
    assert!(!page(&findings, None).contains("id=\"waterfall\""));
    findings.loads = crate::waterfall::tests::two().to_vec();
    let page = page(&findings, None);
    let (_, section) = page.split_once("id=\"waterfall\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    // What two loads differ by is said to be no finding, and in no sentence.
    assert!(
        section.contains("One load of each configuration") && !section.contains("ms later"),
        "{section}"
    );
    assert!(section.contains("&lt;ml-dsa-65&gt;") && !section.contains("<ml-dsa-65>"));
    // For screens and for phones, and the same in numbers.
    assert_eq!(section.matches("<svg").count(), 2);
    let row = "<td>50.0</td><td>150.0</td><td>200.0</td><td>310.0</td><td>350.0</td><td>400.0</td><td>320.0</td><td>5</td><td>0</td><td>9</td>";
    assert!(section.contains(row), "{section}");
}

#[test]
fn claims_are_checked_against_the_whole_interval() {
    let findings = described();
    let verdicts: Vec<_> = (check_claims(&findings).iter())
        .map(|checked| (checked.claim.id.clone(), checked.verdict))
        .collect();
    // Luck is the same at both losses, so the slowdown is zero and nothing but zero.
    assert_eq!(
        verdicts,
        [
            ("one-more".to_owned(), Verdict::Holds),
            ("none".to_owned(), Verdict::Fails),
            ("late".to_owned(), Verdict::Holds),
        ]
    );
}

#[test]
fn published_numbers_stand_beside_ours() {
    let findings = described();
    let agreements: Vec<Vec<_>> = (compare(&findings).iter())
        .map(|row| row.numbers.iter().map(|one| one.agreement).collect())
        .collect();
    assert_eq!(
        agreements,
        [[Agreement::Agrees; 3], [Agreement::Differs; 3]]
    );
    assert!(page(&findings, None).contains("Nobody knows."));
}

#[test]
fn another_run_has_luck_of_its_own() {
    let ours = Estimate {
        value: 10.0,
        interval: Interval {
            low: Some(9.0),
            high: None,
        },
    };
    let Interval { low, high } = prediction(ours);
    assert!((low.unwrap() - (10.0 - 2.0_f64.sqrt())).abs() < 1e-9);
    assert_eq!(high, None);
}

#[test]
fn what_is_missing_is_a_hole() {
    // The post-quantum arm at 1 % and 50 KiB.
    let findings = findings(&format!("{MEASURED}{DRAWN}"), &[(0, 4, 1)]);
    let page = page(&findings, None);
    assert!(page.contains("Not measured: new at path, RTT 35ms, 1gbit, loss 1%"));
    assert!(figures(&findings).unwrap().0.len() == 4);
}

#[test]
fn nothing_measured_is_no_panic() {
    let all: Vec<_> = (0..6)
        .flat_map(|cell| [(0, cell, 0), (0, cell, 1)])
        .collect();
    let findings = findings(&format!("{MEASURED}{DRAWN}"), &all);
    assert!(page(&findings, None).contains("not measured"));
    let verdicts = check_claims(&findings);
    assert!(
        verdicts
            .iter()
            .all(|claim| claim.verdict == Verdict::Unknown)
    );
}

#[test]
fn nothing_valid_is_told_of_nothing() {
    let mut findings = described();
    for summary in &mut findings.summaries {
        for arm in summary.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
            arm.validity = Validity::Invalid("the machine was busy".to_owned());
        }
    }
    let page = page(&findings, None);
    let verdict = page.split("class=\"verdict\">").nth(1).unwrap();
    assert_snapshot!(verdict.split("</p>").next().unwrap(), @"Nothing can be said about new: its samples are not valid (the machine was busy).");
    assert_eq!(page.matches("class=\"unknown\" data-of=").count(), 4);
    assert!(page.contains(">disturbed<"));
}

#[test]
fn a_study_without_figures_gets_some() {
    let findings = findings(MEASURED, &[]);
    let figures = automatic::figures(&findings.study);
    let ids: Vec<_> = figures
        .iter()
        .map(|figure| (&*figure.id, figure.plot))
        .collect();
    assert_eq!(
        ids,
        [
            ("growth-increase", Plot::Increase),
            ("growth-percentiles", Plot::Percentiles)
        ]
    );
    assert!(page(&findings, None).matches("<svg xmlns").count() >= 4);
}

#[test]
fn files_are_drawings_slides_and_numbers() {
    let (files, note) = figures(&described()).unwrap();
    assert_eq!(note, None);
    let ids: Vec<_> = files.iter().map(|file| &*file.id).collect();
    assert_eq!(ids, ["fig1", "fig2", "fig3", "tab1"]);
    for file in &files {
        let kinds: Vec<_> = file.drawings.iter().map(|(what, _)| *what).collect();
        match &*file.id {
            "tab1" => assert!(kinds.is_empty()),
            _ => assert_eq!(kinds, ["", "-slide"]),
        }
        for (_, Drawing { svg, others }) in &file.drawings {
            assert!(
                svg.starts_with("<svg") && !svg.contains("var("),
                "{}",
                file.id
            );
            let begins: Vec<(&str, &[u8])> = others
                .iter()
                .map(|(ending, bytes)| (*ending, &bytes[..4]))
                .collect();
            let expected: [(&str, &[u8]); 2] = [("png", b"\x89PNG"), ("pdf", b"%PDF")];
            assert_eq!(begins, expected, "{}", file.id);
        }
    }
    let lines: Vec<&str> = files[0].csv.lines().collect();
    assert_eq!(
        lines[0],
        "panel,data,series,percentile,increase_percent,low,high,published"
    );
    // Two panels of three sizes at three percentiles.
    assert_eq!(lines.len(), 1 + 18);
    assert!(lines[1].starts_with("loss 0%,0B,new,p50,"), "{}", lines[1]);
    // The table is the one with published numbers, of which the figure draws times.
    assert!(files[3].csv.lines().skip(1).all(|line| line.ends_with(',')));
    assert!(
        files[2].csv.lines().count() > 300,
        "a distribution's quantiles"
    );
}

/// An unescaped `#` would end the link, and browsers drop line breaks.
#[test]
fn links_hold_the_numbers_that_files_have() {
    let findings = described();
    let page = page(&findings, None);
    let links = page.split("href=\"data:text/csv;charset=utf-8,").skip(1);
    let links: Vec<&str> = links.map(|rest| rest.split('"').next().unwrap()).collect();
    let (files, _) = figures(&findings).unwrap();
    let csv: Vec<&str> = files.iter().map(|file| file.csv.as_str()).collect();
    assert_eq!(links.len(), csv.len());
    for (link, csv) in links.into_iter().zip(csv) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~,%".contains(c);
        assert!(link.chars().all(is_plain), "{link}");
        let text = percent_decode_str(link).decode_utf8().unwrap();
        assert_eq!(text, csv);
    }
}

#[test]
fn published_numbers_are_marks_in_their_figure() {
    let drawn = DRAWN.replace("figure = \"tab1\"\nmeasure", "figure = \"fig1\"\nmeasure");
    let drawn = drawn.replacen(
        "plot = \"increase\"",
        "plot = \"increase\"\nmetric = \"handshake\"",
        1,
    );
    let findings = findings(&format!("{MEASURED}{drawn}"), &[]);
    let (files, _) = figures(&findings).unwrap();
    // Two rows of three percentiles, and one in the key.
    assert_eq!(count(&files[0].drawings[0].1.svg, "theirs"), 6 + 1);
    let published: Vec<&str> = (files[0].csv.lines())
        .filter(|line| line.ends_with(",50") || line.ends_with(",5"))
        .collect();
    assert_eq!(published.len(), 6);
}

#[test]
fn texts_of_people_stand_as_they_are_and_do_nothing() {
    let text = format!(
        "name = \"<script>alert(1)</script>\"\nquestion = \"Är <b>ML-DSA</b> langsam? 🐢 \u{5d0}\u{5d1}\"\n\
         note = \"\u{5d0}evil & </style>\"\nanswer = \"<img src=y> {{it}}\"\n{MEASURED}{DRAWN}\
         [number.it]\nmeasure = \"growth\"\narm = \"new\"\nwhat = \"time\"\nmetric = \"handshake\"\n"
    );
    let text = text.replace(
        "[arm.new]\n",
        "[arm.new]\ntitle = \"<u>new & \u{5d0}\"\nabout = \"<i>newer\"\n",
    );
    let text = text.replace("A < B & C", "\u{5e9}\u{5dc}\u{5d5}\u{5dd} 🐢 <img src=x>");
    let findings = findings(&text, &[]).titled();
    let page = page(&findings, Some("https://example.com/a\"><b>/x.html"));
    assert!(
        page.contains("<h1>Är &lt;b&gt;ML-DSA&lt;/b&gt; langsam? 🐢 אב</h1>"),
        "{}",
        &page[..9000]
    );
    assert!(page.contains("&lt;img src=y&gt; <b class=\"number\">"));
    assert!(
        page.contains("&lt;u&gt;new &amp; \u{5d0}") && page.contains("<bdi>&lt;i&gt;newer</bdi>")
    );
    for markup in ["<script>alert", "<b>ML", "<img", "evil & <", "<u>", "<i>"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(page.contains("og:image\" content=\"https://example.com/a&quot;&gt;&lt;b&gt;/x.png\""));
    // What would turn the rest of the page around ends with its own text.
    assert!(page.contains("<p class=\"note\"><bdi>"));
    let (files, _) = figures(&findings).unwrap();
    assert!(files.iter().all(|file| {
        file.drawings
            .iter()
            .all(|(_, drawing)| drawing.others.len() == 2)
    }));
    assert!(share(&findings).unwrap().unwrap().starts_with(b"\x89PNG"));
}

/// Arms are called by their titles wherever people read of them.
#[test]
fn arms_are_called_by_their_titles() {
    let text =
        format!("{MEASURED}{DRAWN}").replace("[arm.new]\n", "[arm.new]\ntitle = \"large chain\"\n");
    let findings = findings(&text, &[]).titled();
    let page = page(&findings, None);
    let told = page.split("<section id=\"origin\"").next().unwrap();
    assert!(
        told.contains("large chain delays the handshake by"),
        "{told}"
    );
    for named in [">new<", "new delays", "of new", "{new"] {
        assert!(!told.contains(named), "{named}");
    }
    // What is asked of an arm is still asked of it.
    let verdicts: Vec<_> = check_claims(&findings)
        .iter()
        .map(|claim| claim.verdict)
        .collect();
    assert_eq!(
        verdicts,
        check_claims(&described())
            .iter()
            .map(|claim| claim.verdict)
            .collect::<Vec<_>>()
    );
    let text = figures(&findings)
        .unwrap()
        .0
        .into_iter()
        .map(|file| file.csv)
        .collect::<String>();
    assert!(text.contains("large chain"));
}

/// An arm delays, not the window that it is measured with.
#[test]
fn headings_name_the_arm_as_the_cause() {
    let text = MEASURED.replace(
        "id = \"growth\"\n",
        "id = \"growth\"\ninitcwnd = [10, 32]\n",
    );
    let figure = "[[figure]]\nid = \"fig\"\nmeasure = \"growth\"\nplot = \"increase\"\nx = \"data\"\nmetric = \"handshake\"\n";
    let findings = findings(&format!("{text}{figure}"), &[]);
    let page = page(&findings, None);
    let section = page.split("id=\"fig\"").nth(1).unwrap();
    let heading = section.split("</h2>").next().unwrap();
    assert!(
        heading.contains("new delays the handshake by up to"),
        "{heading}"
    );
    assert!(heading.contains("initcwnd 10"), "{heading}");
}

#[test]
fn a_figure_may_ask_for_what_does_not_vary() {
    let text = format!(
        "{MEASURED}[[figure]]\nid = \"odd\"\nmeasure = \"growth\"\nplot = \"increase\"\nx = \"rtt\"\nfacet = \"initcwnd\"\n"
    );
    let findings = findings(&text, &[]);
    let (files, _) = figures(&findings).unwrap();
    // What it leaves out and what varies tells series apart: nothing is drawn over another.
    let series = ["loss 0%, 0B", "loss 1%, 200KiB"];
    for name in series {
        assert!(files[0].csv.contains(name), "{}", files[0].csv);
    }
}

#[test]
fn one_cell_is_a_page() {
    let text = MEASURED.replace("loss = [\"0%\", \"1%\"]", "loss = \"0%\"");
    let text = text.replace("[\"0KiB\", \"50KiB\", \"200KiB\"]", "\"50KiB\"");
    let page = page(&findings(&text, &[]), None);
    assert!(page.contains("over 1 network"), "{}", &page[..12_000]);
    assert!(page.matches("<svg xmlns").count() >= 4);
}

#[test]
fn twenty_arms_are_told_apart() {
    let mut text = MEASURED.to_owned();
    let mut arms = String::new();
    for nth in 2..20 {
        arms += &format!(
            "[arm.a{nth}]\ntls = \"secp256r1/rsa-2048:{}B\"\n",
            3000 + nth * 500
        );
    }
    text = text.replace("[link.path]", &format!("{arms}[link.path]"));
    let findings = findings(&text, &[]);
    let page = page(&findings, None);
    assert!(page.contains("What do 19 configurations cost"));
    let (files, _) = figures(&findings).unwrap();
    let mut looks: Vec<&str> = (files[0].drawings[0].1.svg.lines())
        .filter_map(|line| line.strip_prefix("<path class=\"line ")?.split('"').next())
        .filter(|look| !look.starts_with("whisker"))
        .collect();
    looks.sort_unstable();
    looks.dedup();
    assert_eq!(looks.len(), 19, "{looks:?}");
}

#[test]
fn fifty_figures_are_less_than_three_megabytes() {
    let mut text = MEASURED.replace(
        "[\"0%\", \"1%\"]",
        "[\"0%\", \"0.5%\", \"1%\", \"2%\", \"3%\"]",
    );
    text = text.replace(
        "[\"0KiB\", \"50KiB\", \"200KiB\"]",
        "[\"0KiB\", \"10KiB\", \"50KiB\", \"200KiB\", \"1MiB\"]",
    );
    text = text.replace(
        "[link.path]",
        "[arm.a]\ntls = \"x25519/ecdsa-p256\"\n[arm.b]\ntls = \"X25519MLKEM768/ml-dsa-44\"\n\
         [arm.c]\ntls = \"X25519MLKEM768/ml-dsa-87\"\n[link.path]",
    );
    for nth in 0..50 {
        let metric = ["handshake", "ttfb", "ttlb"][nth % 3];
        text += &format!(
            "[[figure]]\nid = \"f{nth}\"\nmeasure = \"growth\"\nmetric = \"{metric}\"\nfacet = \"loss\"\n"
        );
        text += match nth % 5 {
            0 | 1 => "plot = \"increase\"\nx = \"data\"\n",
            2 | 3 => "plot = \"percentiles\"\nx = \"data\"\n",
            _ => "plot = \"cdf\"\nwhere = { data = \"50KiB\" }\n",
        };
    }
    let page = page(&findings(&text, &[]), None);
    // Two are open, the others are a heading each, and contents lead to all.
    assert_eq!(page.matches("<section class=\"figure\" id=\"f").count(), 2);
    assert_eq!(page.matches("<details class=\"figure\">").count(), 48);
    assert_eq!(page.matches("<li><a href=\"#f").count(), 50);
    assert!(page.len() < 3_000_000, "{}", page.len());
}

#[test]
fn hundreds_of_cells_are_a_page_of_a_few_megabytes() {
    let losses: Vec<String> = (0..30).map(|nth| format!("\"0.{nth:02}%\"")).collect();
    let sizes: Vec<String> = (0..10).map(|nth| format!("\"{}KiB\"", 10 * nth)).collect();
    let text = MEASURED
        .replace("[\"0%\", \"1%\"]", &format!("[{}]", losses.join(",")))
        .replace(
            "[\"0KiB\", \"50KiB\", \"200KiB\"]",
            &format!("[{}]", sizes.join(",")),
        )
        .replace("connections = 100", "connections = 4");
    let findings = findings(&text, &[]);
    let page = page(&findings, None);
    assert!(page.len() < 1_500_000, "{}", page.len());
    assert!(page.contains("over 30 networks"));
}

#[test]
fn rows_of_dots_are_of_several_measures() {
    let text = format!(
        r#"{MEASURED}arms = ["old", "new"]
[arm.other]
tls = "X25519MLKEM768/ecdsa-p256"
[arm.another]
tls = "secp256r1/ecdsa-p256"
[[measure]]
id = "more"
arms = ["other", "another"]
data = ["0KiB", "50KiB", "200KiB"]
[[figure]]
id = "rows"
measure = ["growth", "more"]
plot = "dots"
x = "data"
facet = "loss"
percentiles = [50]
[[claim]]
id = "larger"
text = "What an ML-DSA-65 server sends in place of an RSA chain is ten times that"
[[claim.check]]
measure = "growth"
arm = "new"
what = "multiple"
of = "old"
percentiles = [50]
# 1493 of 2031 bytes are the Certificate; 15 630 less the others'.
within = "0.0989..0.09893"
"#
    );
    let findings = findings(&text, &[]);
    let (files, _) = figures(&findings).unwrap();
    // Two panels of four arms at three sizes, which the key has, too.
    let svg = &files[0].drawings[0].1.svg;
    assert_eq!(count(svg, "mark fill"), 24 + 3);
    assert_eq!(svg.matches(">?<").count(), 0);
    let page = page(&findings, None);
    assert!(page.contains("A dot for each value of"));
    assert!(page.contains("largest chain of new to that of old"));
    assert_eq!(check_claims(&findings)[0].verdict, Verdict::Holds);
}

#[test]
fn figures_of_another_study_are_refused() {
    let other = MEASURED.replace("200KiB", "300KiB");
    let study = Study::parse(&other, Path::new("other.toml")).unwrap();
    let error = described().drawn_by(study).err().unwrap();
    assert_snapshot!(error, @r#""other.toml" measures something else than what was run: name the study that was run, in which only figures, published numbers and claims are others"#);
}

#[test]
fn commands_are_as_few_as_grids_allow() {
    let study = Study::parse(MEASURED, Path::new("a.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    let arms: Vec<&Arm> = experiment.arms.iter().collect();
    let of = |cells: &[usize]| {
        let cells: Vec<&Cell> = cells.iter().map(|cell| &experiment.cells[*cell]).collect();
        commands(experiment, &cells, &arms, EngineName::Virtual)
            .unwrap()
            .join("\n")
    };
    let start = format!(
        "lastbyte compare --baseline {CLASSICAL} --against {HYBRID} --chain-profile private --rtt 35ms --rate 1gbit"
    );
    let end = "--connections 100 --engine virtual";
    assert_eq!(
        of(&[0, 1, 2, 3, 4, 5]),
        format!("{start} --loss 0%,1% --initcwnd 10 --data 0B,50KiB,200KiB {end}")
    );
    assert_eq!(
        of(&[0, 1, 5]),
        format!(
            "{start} --loss 0% --initcwnd 10 --data 0B,50KiB {end}\n\
             {start} --loss 1% --initcwnd 10 --data 200KiB {end}"
        )
    );
}

#[test]
fn commands_say_rates_down_and_up() {
    let text = MEASURED.replace("\"1gbit\"", "\"50mbit/10mbit\"");
    let study = Study::parse(&text, Path::new("a.toml")).unwrap();
    let experiment = &study.measures[0].experiment;
    let arms: Vec<&Arm> = experiment.arms.iter().collect();
    let commands = commands(
        experiment,
        &[&experiment.cells[0]],
        &arms,
        EngineName::Virtual,
    )
    .unwrap();
    assert!(
        commands[0].contains(" --rate 50mbit/10mbit "),
        "{commands:?}"
    );
}
