//! A population as a study would say it.

use lastbyte_link::Probability;

use super::joint::TableFile;
use super::{ByClass, Draw, Joint, Listed, Population};
use crate::Parameter;
use crate::quoted::quoted;

impl Population {
    /// The line of `[population]` that is a table: users of each class, with its weight and with what columns have of it.
    pub fn table(classes: &[(&str, f64)], columns: &[(Parameter, Vec<String>)]) -> String {
        let column = |name: &str, cells: Vec<String>| format!("{name} = [{}]", cells.join(", "));
        let names = classes.iter().map(|(class, _)| quoted(class));
        let weights = classes.iter().map(|(_, weight)| weight.to_string());
        let columns = columns
            .iter()
            .map(|(parameter, cells)| column(parameter.name(), cells.iter().map(quoted).collect()));
        let all = [
            column("class", names.collect()),
            column("weight", weights.collect()),
        ];
        let all: Vec<String> = all.into_iter().chain(columns).collect();
        format!("joint = {{ {} }}\n", all.join(", "))
    }

    /// `[population]` and the tables in it, as [`crate::Study::parse`] reads them.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("[population]\n");
        let mut set = |key: &str, value: String| text += &format!("{key} = {value}\n");
        set(
            "connections_per_user",
            self.connections_per_user.to_string(),
        );
        if let Some(digest) = &self.digest {
            set("digest", format!("{digest:?}"));
        }
        if let Some(listed) = &self.listed {
            return text + &listed.to_toml();
        }
        if let Some(class) = &self.class {
            set("class", class.to_string());
        }
        for (parameter, distribution) in &self.parameters {
            set(parameter.name(), distribution.to_toml(*parameter));
        }
        if let Some(shares) = &self.shares {
            if shares.resumes != ByClass::default() {
                set("resumes", by_class(&shares.resumes));
            }
            set("early_data", by_class(&shares.early_data));
        }
        if let Some(share) = self.resumes_least {
            set("resumes_least", format!("\"{share}\""));
        }
        if let Some(share) = self.rtt_share {
            set("rtt_share", format!("\"{share}\""));
        }
        let joint: Vec<_> = self.joint.iter().map(joint).collect();
        match &joint[..] {
            [] => {}
            [alone] => set("joint", alone.clone()),
            all => set("joint", format!("[{}]", all.join(", "))),
        }
        text
    }
}

/// A table, or the file that has it.
fn joint(joint: &Joint) -> String {
    if let Some(TableFile { name, sha256 }) = joint.file() {
        return format!("{{ file = {}, sha256 = {} }}", quoted(name), quoted(sha256));
    }
    let columns = joint.to_toml().into_iter();
    let columns: Vec<_> = columns
        .map(|(name, cells)| format!("{name} = {cells}"))
        .collect();
    format!("{{ {} }}", columns.join(", "))
}

impl Listed {
    fn to_toml(&self) -> String {
        let Listed { first, draws } = self;
        let mut text = format!("[population.drawn]\nfirst = {first}\n");
        let mut set = |key: &str, cells: Vec<String>| {
            text += &format!("{key} = [{}]\n", cells.join(", "));
        };
        set(
            "user",
            draws.iter().map(|draw| draw.user.to_string()).collect(),
        );
        if draws.iter().any(|draw| draw.class.is_some()) {
            let class = |draw: &Draw| quoted(draw.class.as_deref().unwrap_or_default());
            set("class", draws.iter().map(class).collect());
        }
        if draws.iter().all(|draw| draw.session.is_some()) {
            let session = |draw: &Draw| format!("{:?}", draw.session.unwrap_or_default().name());
            set("session", draws.iter().map(session).collect());
        }
        let drawn: Vec<Parameter> = draws
            .first()
            .map(|draw| {
                draw.values
                    .iter()
                    .map(|(parameter, _)| *parameter)
                    .collect()
            })
            .unwrap_or_default();
        for parameter in drawn {
            let value = |draw: &Draw| {
                let mut values = draw.values.iter();
                let value =
                    values.find_map(|(known, value)| (*known == parameter).then_some(value));
                quoted(value.map(|value| &**value).unwrap_or_default())
            };
            set(parameter.name(), draws.iter().map(value).collect());
        }
        text
    }
}

fn by_class(share: &ByClass) -> String {
    let percent = |share: &Probability| format!("\"{share}\"");
    match share {
        ByClass::All(share) => percent(share),
        ByClass::Each(classes) => {
            let classes: Vec<_> = classes
                .iter()
                .map(|(name, share)| format!("{} = {}", quoted(name), percent(share)))
                .collect();
            format!("{{ {} }}", classes.join(", "))
        }
    }
}
