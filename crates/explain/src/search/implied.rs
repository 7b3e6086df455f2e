//! What edges that others found say of their server: which windows, groups and signatures have edges there.

use lastbyte_sizes::{ChainSpec, Group, KeyAlgorithm};

use super::computed;
use lastbyte_study::{Arm, ArmChain, Cell, Metric, PublishedEdges, Search};

/// How far edges may be off for a guess to be told, as a share of the published ones, which are round numbers.
const WITHIN: f64 = 0.1;

/// A guess at a server whose edges are about where others found them.
#[derive(Clone, Debug, PartialEq)]
pub struct Implied {
    /// Its initial window in segments.
    pub initcwnd: u32,
    /// Its group.
    pub group: Group,
    /// The algorithm of its end-entity, so of its CertificateVerify.
    pub leaf: KeyAlgorithm,
    /// Bytes of the Certificate message at its edges, as many as were published.
    pub edges: Vec<usize>,
    /// Bytes of all else of the server's flight on the wire: its segments are full at an edge.
    pub rest: usize,
    /// The largest distance to a published edge, as a share of that.
    pub off: f64,
}

/// The guesses that are near, the nearest first: of the windows of a search, groups and signatures that are in use.
pub fn implied(search: &Search, published: &PublishedEdges) -> Vec<Implied> {
    const GROUPS: [Group; 4] = [
        Group::X25519,
        Group::X25519MlKem768,
        Group::Secp256r1MlKem768,
        Group::Secp384r1MlKem1024,
    ];
    const LEAVES: [KeyAlgorithm; 5] = [
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::Rsa2048,
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ];
    let mut cells: Vec<&Cell> = Vec::new();
    for cell in &search.experiment.cells {
        if !cells
            .iter()
            .any(|times_by_size| times_by_size.initcwnd == cell.initcwnd)
        {
            cells.push(cell);
        }
    }
    let mut guesses = Vec::new();
    for cell in cells {
        for group in GROUPS {
            for leaf in LEAVES {
                guesses.extend(guess(cell, search.metric, group, leaf, published));
            }
        }
    }
    guesses.retain(|guess| guess.off <= WITHIN);
    guesses.sort_by(|one, other| one.off.total_cmp(&other.off));
    guesses
}

fn guess(
    cell: &Cell,
    metric: Metric,
    group: Group,
    leaf: KeyAlgorithm,
    published: &PublishedEdges,
) -> Option<Implied> {
    let arm = Arm::of(group, ArmChain::Made(ChainSpec::new(leaf))).ok()?;
    let most = published.edges.iter().max()? * 3 / 2;
    let cell = super::without_luck(cell);
    let edges = computed(&arm, &cell, metric, (1000, most), None).ok()?;
    let edges: Vec<_> = edges.iter().map(|edge| edge.below).collect();
    let edges = edges.get(..published.edges.len())?;
    let off = (edges.iter().zip(&published.edges)).map(|(edge, published)| {
        let published = *published as f64;
        (edge.certificate as f64 - published).abs() / published
    });
    let first = edges.first()?;
    Some(Implied {
        initcwnd: cell.initcwnd,
        group,
        leaf,
        rest: first.server_flight - first.certificate,
        off: off.fold(0.0, f64::max),
        edges: edges.iter().map(|edge| edge.certificate).collect(),
    })
}
