//! What another chain changes for the users of a population.

use std::time::Duration;

use lastbyte_explain::Explanation;
use lastbyte_explain::site::{Chain, OF_PATHS, PERCENTILES, USERS, UserTimes, Users};
use lastbyte_link::{counted, visible};
use lastbyte_study::Parameter;

use super::table::later;

/// For people.
pub(super) fn table(
    users: &Users,
    chains: &[(&Chain, Explanation)],
    times: &[UserTimes],
) -> String {
    let names = chains.iter().map(|(chain, _)| visible(&chain.name));
    let names: Vec<String> = names.collect();
    let width = names.iter().map(|name| name.chars().count());
    let width = width.fold(28, usize::max);
    let mut text = format!(
        "\n{:<width$} {:>14}  {:>14} {:>10} {:>10}  {:>14} {:>10} {:>10}\n",
        "users", "beyond an edge", "first byte p50", "p75", "p95", "last byte p50", "p75", "p95"
    );
    for (number, (name, own)) in names.iter().zip(times).enumerate() {
        let beyond = match number {
            0 => "-".to_owned(),
            _ => format!("{:.1}%", 100.0 * own.beyond),
        };
        let columns = |of: fn(&UserTimes) -> &Vec<Option<Duration>>| {
            let today = times.first().map(of).into_iter().flatten();
            let columns = of(own).iter().zip(today);
            let columns = columns.zip([14, 10, 10]);
            let columns =
                columns.map(|((own, today), width)| format!("{:>width$}", later(*own, *today)));
            columns.collect::<Vec<_>>().join(" ")
        };
        let (first, last) = (
            columns(|times| &times.first_byte),
            columns(|times| &times.last_byte),
        );
        text += &format!("{name:<width$} {beyond:>14}  {first}  {last}\n");
    }
    let near = times.iter().map(|times| times.near).fold(0.0, f64::max);
    if near > 0.0 {
        text += &format!(
            "{:.1}% have so slow a link, or so long an RTT, that Linux sends segments twice without need, which is left out: their times are near\n",
            100.0 * near
        );
    }
    text + &supposed(users)
}

/// What is supposed of them.
fn supposed(users: &Users) -> String {
    let population = users.population();
    let [drawn, silent]: [Vec<&str>; 2] = [true, false].map(|is_drawn| {
        let names = OF_PATHS.into_iter();
        names.filter(|name| users.draws(name) == is_drawn).collect()
    });
    let left_out = population.drawn().map(Parameter::name);
    let left_out: Vec<&str> = left_out.filter(|name| !OF_PATHS.contains(name)).collect();
    let clause = |names: &[&str], what: &str| match names {
        [] => String::new(),
        names => format!(", {} {what}", names.join(" and ")),
    };
    let resume = population.most_that_resume().filter(|share| *share > 0.0);
    let resume = resume.map_or_else(String::new, |share| {
        format!(
            ", though up to {:.0}% resume and get no chain",
            100.0 * share
        )
    });
    format!(
        "{} drawn from {}: {} of each{}{}; all in full handshakes{resume}\n\
             beyond an edge: the server's handshake waits for acknowledgements, longer than today; bytes that only take time on a \
             slow path are no edge\n",
        counted(USERS as usize, "user"),
        visible(users.name()),
        drawn.join(" and "),
        clause(&silent, "as on the measured path"),
        clause(&left_out, "left out"),
    )
}

/// For machines.
pub(super) fn json(users: &Users, times: &UserTimes) -> serde_json::Value {
    let percentiles = |all: &[Option<Duration>]| -> serde_json::Value {
        let named = PERCENTILES.iter().zip(all).map(|(percentile, time)| {
            let ms = time.map(|time| time.as_secs_f64() * 1e3);
            (format!("p{percentile}"), serde_json::json!(ms))
        });
        serde_json::Value::Object(named.collect())
    };
    serde_json::json!({
        "population": users.name(),
        "drawn": USERS,
        "beyond_an_edge": times.beyond,
        "near": times.near,
        "first_byte_ms": percentiles(&times.first_byte),
        "last_byte_ms": percentiles(&times.last_byte),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_drawn_and_what_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users.toml");
        let text =
            "[population]\nrtt = \"80ms\"\nloss = \"2%\"\ndata = \"1MiB\"\nresumes = \"46%\"\n";
        std::fs::write(&file, text).unwrap();
        let line = supposed(&file.to_str().unwrap().parse().unwrap());
        for expected in [
            "users.toml: rtt of each, rate as on the measured path, loss and data left out",
            "up to 46% resume and get no chain",
        ] {
            assert!(line.contains(expected), "{line}");
        }
    }
}
