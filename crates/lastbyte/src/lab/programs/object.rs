//! Transfers that servers which people run answer: one object, where our own client asks for it.

use std::path::Path;

use lastbyte_page::{Answer, Content, Site};

use super::servers::{IDLE, Serving};
use super::{Computing, Origin, PageError, Programs};
use crate::lab::process::Process;
use crate::lab::surroundings::{SERVER, Sides};
use crate::lab::{LabError, PreparedArm};
use crate::study::Cell;
use crate::study::exchange::OBJECT;

/// What answers the transfers of an arm, if that is not our own server.
#[derive(Clone, Copy)]
pub(in crate::lab) struct ForeignServer<'a> {
    pub(in crate::lab) arm: &'a PreparedArm,
    pub(in crate::lab) programs: &'a Programs,
    /// For its files.
    pub(in crate::lab) folder: &'a Path,
    pub(in crate::lab) computing: Computing,
}

impl ForeignServer<'_> {
    /// Starts it, and waits until it listens. The calling thread is in the client's namespace then.
    ///
    /// # Errors
    ///
    /// Why it does not run.
    pub(in crate::lab) fn start(
        &self,
        cell: &Cell,
        sides: &dyn Sides,
    ) -> Result<Process, LabError> {
        let chain = &self.arm.chain;
        let origin = Origin {
            name: chain.server_name().to_owned(),
            address: SERVER,
            chain: chain.clone(),
        };
        let site = site(&origin.name, cell);
        sides.enter_server()?;
        let serving = Serving {
            server: self.arm.arm.server,
            transport: self.arm.arm.transport,
            program: self.programs.server.as_deref().ok_or(PageError::OURS)?,
            group: self.arm.arm.group,
            origins: &[origin],
            // A client that thinks finds its connection again.
            idle: IDLE.saturating_add(cell.think),
            computing: self.computing,
        };
        let process = serving.start(&site, self.folder)?;
        sides.enter_client()?;
        Ok(process)
    }
}

/// One object of as many bytes as a response of the cell has.
fn site(name: &str, cell: &Cell) -> Site {
    let object = Answer {
        resource: 0,
        origin: 0,
        path: OBJECT.to_owned(),
        fields: vec![(
            "content-type".to_owned(),
            "application/octet-stream".to_owned(),
        )],
        content: Content::Body(vec![0; cell.data.0 as usize]),
        is_recorded: false,
    };
    Site {
        origins: vec![name.to_owned()],
        answers: vec![object],
        grown: Vec::new(),
    }
}
