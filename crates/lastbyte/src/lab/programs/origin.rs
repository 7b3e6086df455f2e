//! The origins of a page: names, addresses and chains that servers have.

use std::net::Ipv4Addr;
use std::time::Duration;

use lastbyte_pki::{Chain, Store};

use super::PageError;
use crate::lab::{LabError, PreparedArm};
use crate::study::{ArmChain, Cell};

/// Where the document's origin is; the others follow.
pub(in crate::lab) const FIRST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);

/// One of a page's origins.
pub(in crate::lab) struct Origin {
    pub(in crate::lab) name: String,
    pub(in crate::lab) address: Ipv4Addr,
    pub(in crate::lab) chain: Chain,
}

/// The origins of a cell's page, each with a chain of its own, like the arm's.
pub(in crate::lab) fn origins(
    arm: &PreparedArm,
    cell: &Cell,
    store: &Store,
) -> Result<Vec<Origin>, LabError> {
    let page = page(cell)?;
    let count = usize::from(page.origins());
    let chain_of = |place: usize| -> Result<(String, Chain), LabError> {
        match &arm.arm.chain {
            _ if place == 0 => Ok((arm.chain.server_name().to_owned(), arm.chain.clone())),
            ArmChain::Made(spec) => {
                let mut spec = spec.clone();
                spec.origin = u8::try_from(place).unwrap_or(u8::MAX);
                let chain = store.chain(&spec)?;
                Ok((chain.server_name().to_owned(), chain))
            }
            ArmChain::Pem(_) => {
                let names = names(&arm.chain);
                let name = names.get(place).cloned();
                let few = PageError::Names {
                    origins: count,
                    names: names.len(),
                };
                Ok((name.ok_or(few)?, arm.chain.clone()))
            }
        }
    };
    let origin = |place: usize| {
        let (name, chain) = chain_of(place)?;
        Ok(Origin {
            name,
            address: Ipv4Addr::from_bits(FIRST.to_bits() + place as u32),
            chain,
        })
    };
    (0..count).map(origin).collect()
}

/// The names that a certificate is for, but for those of many hosts; the first one is the server's.
fn names(chain: &Chain) -> Vec<String> {
    let mut names = vec![chain.server_name().to_owned()];
    let certificate = chain.certificates().first();
    let others = certificate.and_then(|certificate| certificate.subject_alt_names());
    for name in others.iter().flatten().filter_map(|name| name.dnsname()) {
        if !name.contains('*') && !names.iter().any(|listed| listed == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The page of a cell.
pub(in crate::lab) fn page(cell: &Cell) -> Result<lastbyte_page::Page, PageError> {
    let source = cell.page.as_ref();
    let source = source.ok_or_else(|| PageError::Page("the cell has no page".to_owned()))?;
    source.page(cell.origins).map_err(PageError::Page)
}

/// From when on the chains of all origins are valid, since 1970.
pub(in crate::lab) fn valid_from(origins: &[Origin]) -> Duration {
    let from = origins.iter().map(|origin| origin.chain.valid_from());
    from.max().unwrap_or_default()
}
