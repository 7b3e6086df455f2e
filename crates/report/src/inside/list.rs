//! Connections of captures, the slowest first.

use std::time::Duration;

use lastbyte_link::{counted, shell_word};

use super::Seen;
use crate::Screen;
use lastbyte_results::number::milliseconds;

/// A connection of a capture, for a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The file, as it was named.
    pub file: String,
    /// Which connection of it, from 0.
    pub index: usize,
    /// How long it took.
    pub slowness: Option<Duration>,
    /// Packets that the link dropped.
    pub lost: usize,
    /// Packets that were sent again.
    pub again: usize,
}

impl Listed {
    /// That of a connection in a file.
    #[must_use]
    pub fn new(file: &str, index: usize, seen: &Seen) -> Listed {
        let [lost, again] = seen.troubles();
        Listed {
            file: file.to_owned(),
            index,
            slowness: seen.slowness(),
            lost,
            again,
        }
    }

    fn time(&self) -> String {
        match self.slowness {
            Some(Duration::MAX) => "not ended".to_owned(),
            Some(time) => milliseconds(time),
            None => "not told".to_owned(),
        }
    }
}

/// The first of those that are told, the slowest first; the first is drawn below. Those of which no time is told come last.
#[must_use]
pub fn list(connections: &[Listed], screen: Screen) -> String {
    const MOST: usize = 10;
    let mut ordered: Vec<&Listed> = connections.iter().collect();
    ordered.sort_by_key(|one| std::cmp::Reverse(one.slowness));
    let Some(first) = ordered.first() else {
        return String::new();
    };
    let is_one_file = ordered.iter().all(|one| one.file == first.file);
    let files = if is_one_file {
        shell_word(&first.file)
    } else {
        "several files".to_owned()
    };
    let other = ordered.get(1).unwrap_or(first);
    let intro = format!(
        "{} in {files}, the slowest first, which is drawn below. `lastbyte show {} {}` draws another one.",
        counted(ordered.len(), "connection"),
        shell_word(&other.file),
        other.index,
    );
    let mut text = screen.wrap(&intro, 0).trim_end().to_owned() + "\n";
    let shown = ordered.iter().take(MOST);
    let width = shown.clone().map(|one| one.time().len()).max().unwrap_or(0);
    for one in shown {
        let time = one.time();
        text += &if is_one_file {
            format!("{:>5}  {time:>width$}", one.index)
        } else {
            format!("  {time:>width$}   {} {}", one.file, one.index)
        };
        let mut packets = Vec::new();
        if one.lost > 0 {
            packets.push(format!("{} lost", counted(one.lost, "packet")));
        }
        if one.again > 0 {
            packets.push(format!("{} sent again", one.again));
        }
        if !packets.is_empty() {
            text += &format!("  {}", packets.join(", "));
        }
        text.push('\n');
    }
    if ordered.len() > MOST {
        text += &format!("  and {} more\n", ordered.len() - MOST);
    }
    text
}
