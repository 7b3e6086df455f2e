//! Page loads in place of transfers: which page, and what its browser has from before.

use std::fmt;
use std::sync::Arc;

use lastbyte_link::named;
use lastbyte_page::har::{self, Recorded};
use lastbyte_page::{Named, Page};
use lastbyte_sizes::{ChainSpec, Group};

use super::server::{ServerProblem, check_transfers, is_classical, is_ml_dsa, of_our_server};
use super::value::PageError;
use super::{
    Arm, ArmChain, Cell, CpuTime, Emulation, Experiment, NamedFile, Parameter, Preset, Study,
    StudyFolder, TransportName, check_transports,
};

/// Where a page comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageSource {
    /// A model with a source.
    Model(Named),
    /// What a browser has recorded.
    Har(Har),
}

/// A HAR that a study names, and the page in it.
#[derive(Clone, Debug)]
pub struct Har {
    named: String,
    /// What it is called where results are kept.
    retained: String,
    recorded: Arc<Recorded>,
}

impl PartialEq for Har {
    /// Its notes are about the file.
    fn eq(&self, other: &Har) -> bool {
        self.named == other.named && self.recorded.page == other.recorded.page
    }
}

impl Eq for Har {}

impl Har {
    /// How the name of a file ends that is one.
    const ENDING: &str = ".har";

    fn read(named: &str, folder: &StudyFolder) -> Result<Har, PageError> {
        let file = (folder.read(named)).map_err(|error| PageError::Unreadable {
            named: named.to_owned(),
            error,
        })?;
        let recorded = har::read(&file.content).map_err(|error| PageError::Har {
            named: named.to_owned(),
            error,
        })?;
        Ok(Har {
            named: named.to_owned(),
            retained: file.name,
            recorded: Arc::new(recorded),
        })
    }

    /// What of the file is not in the page, each in a line.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let notes = self.recorded.notes.iter();
        notes.map(|note| format!("{:?}: {note}", self.named))
    }

    /// What results keep of it: the page alone. In what a browser records are its user's cookies.
    pub(super) fn retained(&self) -> NamedFile {
        NamedFile {
            name: self.retained.clone(),
            content: har::of_page(&self.recorded.page).into_bytes().into(),
        }
    }
}

/// What the browser has of a page from before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// Nothing.
    #[default]
    Cold,
    /// All that one visit has left: its HTTP cache, sessions of TLS, names. Connections are closed.
    Warm,
}

named!(Cache, "cache", { Cold => "cold", Warm => "warm" });

impl PageSource {
    /// Reads what a study says.
    ///
    /// # Errors
    ///
    /// That it is neither a model nor the name of a HAR, with the hint, or why that HAR has no page, in one line.
    pub(super) fn read(text: &str, folder: &StudyFolder) -> Result<PageSource, PageError> {
        if text.ends_with(Har::ENDING) {
            return Har::read(text, folder).map(PageSource::Har);
        }
        if text.contains("://") {
            return Err(PageError::Address(text.to_owned()));
        }
        let model = text.parse().map(PageSource::Model);
        model.map_err(|_| PageError::Unknown {
            text: text.to_owned(),
            ending: Har::ENDING,
        })
    }

    /// The page, on so many origins if it is a model's.
    ///
    /// # Errors
    ///
    /// Why there is none, in one line.
    pub fn page(&self, origins: u32) -> Result<Page, String> {
        self.made(origins).map_err(|error| error.to_string())
    }

    fn made(&self, origins: u32) -> Result<Page, PageError> {
        match self {
            PageSource::Model(named) => {
                let mut model = named.model();
                model.origins = u8::try_from(origins).unwrap_or(u8::MAX);
                Ok(model.page()?)
            }
            PageSource::Har(har) => Ok(har.recorded.page.clone()),
        }
    }

    /// Whether there is such a page.
    ///
    /// # Errors
    ///
    /// Those of [`page`](PageSource::page), and where origins are asked for that a HAR has itself.
    pub(super) fn check(&self, origins: u32) -> Result<(), PageError> {
        if let PageSource::Har(har) = self
            && origins != 1
        {
            return Err(PageError::Origins {
                origins,
                named: har.named.clone(),
            });
        }
        self.made(origins).map(|_| ())
    }
}

impl fmt::Display for PageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageSource::Model(named) => named.fmt(f),
            PageSource::Har(har) => har.named.fmt(f),
        }
    }
}

/// Groups that Chromium has, in the order of its supported_groups. It sends key shares for the first two.
const BROWSER_GROUPS: [Group; 4] = [
    Group::X25519MlKem768,
    Group::X25519,
    Group::Secp256r1,
    Group::Secp384r1,
];
const BROWSER_KEY_SHARES: usize = 2;

/// Whether the servers of an experiment's arms can answer all that is asked for in its cells.
///
/// # Errors
///
/// One line for the first that can't: what, why, and what to write instead.
pub fn check_servers(experiment: &Experiment) -> Result<(), String> {
    check_each(experiment).map_err(|problem| problem.to_string())
}

fn check_each(experiment: &Experiment) -> Result<(), ServerProblem> {
    check_transports(&experiment.arms, &experiment.cells)?;
    let has_page = |cell: &&Cell| cell.page.is_some();
    match experiment.cells.iter().filter(has_page).count() {
        0 => check_transfers(experiment),
        pages if pages == experiment.cells.len() => check_pages(experiment),
        _ => Err(ServerProblem::Apart),
    }
}

/// The same of an experiment in which nothing else than pages is.
fn check_pages(experiment: &Experiment) -> Result<(), ServerProblem> {
    let Some(cell) = experiment.cells.first() else {
        return Ok(());
    };
    let refused = [
        (
            matches!(experiment.cpu, CpuTime::Beside | CpuTime::Calibrated),
            "what a browser computes is not measured on this machine: leave cpu out, or write laptop, phone or none",
        ),
        (
            experiment.emulation == Emulation::Link,
            "pages are loaded over netem: leave emulation = \"link\" out",
        ),
        (
            cell.preset != Preset::Network,
            "pages are loaded with the preset network: leave preset out",
        ),
        (
            cell.population.is_some(),
            "pages are not drawn from a population: leave [population] out",
        ),
    ];
    if let Some((_, problem)) = refused.into_iter().find(|(is_so, _)| *is_so) {
        return Err(ServerProblem::OfPages(problem));
    }
    let said = |parameter: &Parameter| {
        let of_quic = parameter.transport() == Some(TransportName::Quic);
        of_quic && !experiment.cells.iter().all(|cell| parameter.is_usual(cell))
    };
    if let Some(parameter) = Parameter::ALL.into_iter().find(said) {
        return Err(ServerProblem::OfOurEnds {
            parameter: parameter.name(),
        });
    }
    (experiment.arms.iter()).try_for_each(|arm| check_arm(arm).map_err(|problem| problem.of(arm)))
}

fn check_arm(arm: &Arm) -> Result<(), ServerProblem> {
    if !arm.server.serves_pages(arm.transport) {
        return Err(match arm.transport {
            TransportName::Tcp => ServerProblem::OneConnection,
            TransportName::Quic => ServerProblem::NoHttp3,
        });
    }
    if arm.client.is_foreign() {
        return Err(ServerProblem::OtherClient);
    }
    if !BROWSER_GROUPS.contains(&arm.group) {
        return Err(ServerProblem::BrowserGroup {
            group: arm.group,
            known: &BROWSER_GROUPS,
        });
    }
    let usual = Arm::bare(arm.group, arm.chain.clone());
    let of_client = [
        (arm.key_shares != usual.key_shares, "key_share="),
        (arm.client_stack != usual.client_stack, "client_stack="),
        (arm.client_hello_split.is_some(), "client_hello_split="),
        (arm.max_cert_list.is_some(), "max_cert_list="),
    ];
    let of_client = of_client.into_iter().find(|(is_so, _)| *is_so);
    if let Some(key) = of_our_server(arm).or(of_client.map(|(_, key)| key)) {
        return Err(ServerProblem::OwnEnds {
            key,
            server: arm.server,
        });
    }
    match &arm.chain {
        ArmChain::Made(spec) => check_chain(spec, arm.transport),
        ArmChain::Pem(_) => Ok(()),
    }
}

/// What browsers verify, as tried with Chromium 156 and the NSS of Debian 12.
fn check_chain(spec: &ChainSpec, transport: TransportName) -> Result<(), ServerProblem> {
    let ChainSpec {
        leaf, ca, root_key, ..
    } = *spec;
    for key in [leaf, ca, root_key] {
        if !is_classical(key) && !is_ml_dsa(key) {
            return Err(ServerProblem::Unverified(key));
        }
        if is_ml_dsa(key) && transport == TransportName::Quic {
            return Err(ServerProblem::UnverifiedOverQuic(key));
        }
    }
    if !is_classical(root_key) {
        return Err(ServerProblem::Root { leaf, ca, root_key });
    }
    Ok(())
}

impl Study {
    /// Whether any of its measures loads pages.
    pub fn has_pages(&self) -> bool {
        let mut measures = self.measures.iter();
        measures.any(|measure| measure.experiment.has_pages())
    }
}

impl Experiment {
    /// What there is to say of its cells' jitter: once, of the first where it is wider than the delay.
    pub fn jitter_note(&self) -> Option<String> {
        self.cells.iter().find_map(super::Cell::jitter_note)
    }

    /// What of the HARs that it names is not in their pages, each in a line.
    pub fn har_notes(&self) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for page in self.cells.iter().filter_map(|cell| cell.page.as_ref()) {
            if let PageSource::Har(har) = page {
                for note in har.notes() {
                    if !told.contains(&note) {
                        told.push(note);
                    }
                }
            }
        }
        told
    }
}

impl Arm {
    /// The same with what a browser guesses.
    #[must_use]
    pub fn of_browser(&self) -> Arm {
        Arm {
            key_shares: BROWSER_GROUPS
                .into_iter()
                .take(BROWSER_KEY_SHARES)
                .collect(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
