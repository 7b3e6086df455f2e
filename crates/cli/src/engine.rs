//! Which engine carries the bytes.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use clap::builder::ValueParser;
use lastbyte_pki::Store;

use super::one_of::one_of;
use super::progress::Bar;
use super::{Failure, own};
use lastbyte::kernel::{self, Kernel, KernelError};
use lastbyte::lab::{
    self, Engine, Inspection, Interception, LiveEngine, Model, PreparedArm, Run, Runner, Shortcuts,
    VirtualEngine, Watcher,
};
use lastbyte::study::{
    Arm, CpuTime, EngineChoice, EngineName, Experiment, Percentile, QuicIn, Study, is_modelled,
};

/// An engine, and why this one.
pub(super) struct Chosen {
    pub(super) engine: Carrier,
    /// One line.
    pub(super) reason: String,
}

/// An engine that this machine has.
pub(super) enum Carrier {
    Live,
    Virtual(Box<Kernel>, Interception),
    /// Of arms that take no kernel.
    Model,
}

/// Takes an engine's name.
pub(super) fn names() -> ValueParser {
    one_of(
        EngineChoice::ALL.map(EngineChoice::name),
        EngineChoice::from_str,
    )
    .into()
}

/// The engine that is asked for, for arms of which each is carried so if it is over QUIC. Left alone, the virtual one where
/// it can be had.
pub(super) fn choose<'a>(
    choice: EngineChoice,
    arms: impl IntoIterator<Item = (&'a Arm, QuicIn)>,
) -> Result<Chosen, Failure> {
    let mut arms = arms.into_iter().peekable();
    let is_any = arms.peek().is_some();
    let is_modelled = |(arm, quic_in)| is_modelled(arm, quic_in);
    if is_any && choice != EngineChoice::Live && arms.all(is_modelled) {
        return Ok(Chosen {
            engine: Carrier::Model,
            reason: "no kernel, as all arms have transport=quic: both ends and the network are in this process, in virtual \
                     time"
                .to_owned(),
        });
    }
    match choice {
        EngineChoice::Live => Ok(Chosen {
            engine: Carrier::Live,
            reason: "the live engine, as asked for".to_owned(),
        }),
        EngineChoice::Virtual => {
            let cannot =
                |problem| Failure::Machine(format!("the virtual engine can't run here: {problem}"));
            let grants = lab::can_boot_kernels().map_err(cannot)?;
            let kernel = Box::new(kernel::require()?);
            let way = grants.interception(&kernel.info).map_err(cannot)?.way;
            Ok(Chosen {
                engine: Carrier::Virtual(kernel, way),
                reason: "the virtual engine, as asked for".to_owned(),
            })
        }
        EngineChoice::Auto => {
            let live = |reason| Chosen {
                engine: Carrier::Live,
                reason,
            };
            let cannot = |problem| {
                live(format!(
                    "the live engine, as virtual kernels can't run here: {problem}"
                ))
            };
            Ok(match (lab::can_boot_kernels(), kernel::find()) {
                (Err(problem), _) => cannot(problem),
                (Ok(grants), Ok(Some(kernel))) => match grants.interception(&kernel.info) {
                    Err(problem) => cannot(problem),
                    Ok(chosen) => Chosen {
                        reason: format!(
                            "the virtual engine, as its kernel is built (Linux {})",
                            kernel.info.version
                        ),
                        engine: Carrier::Virtual(Box::new(kernel), chosen.way),
                    },
                },
                (Ok(_), Ok(None)) => match kernel::require() {
                    // Whoever names a kernel does not mean this machine's.
                    Err(
                        error @ KernelError::NotBuilt {
                            series: Some(_), ..
                        },
                    ) => {
                        return Err(error.into());
                    }
                    _ => live(format!(
                        "the live engine, as no kernel is built for the virtual one: run {}",
                        kernel::GET
                    )),
                },
                (Ok(_), Err(error)) if has_no_folder(&error) => {
                    live(format!("the live engine: {error}"))
                }
                // A kernel is there: in real time, numbers would be others without a word.
                (Ok(_), Err(error)) => return Err(error.into()),
            })
        }
    }
}

/// Whether there is no place at all where a kernel could be.
fn has_no_folder(error: &KernelError) -> bool {
    match error {
        KernelError::NoCache(_) => true,
        KernelError::Cache { source, .. } => source.kind() == io::ErrorKind::NotADirectory,
        _ => false,
    }
}

impl Carrier {
    /// The same, with guests whose calls are intercepted so, if that is asked for.
    pub(super) fn intercepting(self, way: Option<Interception>) -> Result<Carrier, Failure> {
        match (self, way) {
            (Carrier::Virtual(kernel, _), Some(way)) if way.is_in(&kernel.info) => {
                Ok(Carrier::Virtual(kernel, way))
            }
            (Carrier::Virtual(kernel, _), Some(way)) => Err(Failure::Usage(format!(
                "Linux {} has no {way} as a way to intercept calls",
                kernel.info.version
            ))),
            (carrier, _) => Ok(carrier),
        }
    }

    /// The engine, for a program with these arguments.
    pub(super) fn set_up(
        &self,
        arguments: &[OsString],
        shortcuts: Shortcuts,
    ) -> Result<Box<dyn Engine>, Failure> {
        self.set_up_with(arguments, shortcuts, &own::store()?, None)
    }

    /// The same for arms whose chains are in this store. Calibrations are in that folder, or else where they are for
    /// everybody.
    pub(super) fn set_up_with(
        &self,
        arguments: &[OsString],
        shortcuts: Shortcuts,
        chains: &Store,
        calibrations: Option<&Path>,
    ) -> Result<Box<dyn Engine>, Failure> {
        match self {
            Carrier::Live => Ok(Box::new(LiveEngine::new(lab::environment(arguments)))),
            Carrier::Model => {
                let cache = match calibrations {
                    Some(folder) => folder.to_owned(),
                    None => Store::default_dir().map_err(Failure::usage)?,
                };
                let environment = lab::environment(arguments);
                Ok(Box::new(Model::new(environment, chains.clone(), cache)))
            }
            Carrier::Virtual(kernel, way) => {
                let engine = virtual_engine_with(kernel.clone(), *way, arguments, chains)?;
                let engine = match calibrations {
                    Some(folder) => {
                        engine.with_cache(std::path::absolute(folder).map_err(Failure::usage)?)
                    }
                    None => engine,
                };
                Ok(Box::new(engine.with_shortcuts(shortcuts)))
            }
        }
    }
}

/// The virtual engine with this kernel.
pub(super) fn virtual_engine(
    kernel: Box<Kernel>,
    way: Interception,
    arguments: &[OsString],
) -> Result<VirtualEngine, Failure> {
    let program = env::current_exe()
        .map_err(|error| Failure::Machine(format!("can't find this program's file: {error}")))?;
    let store = Store::default_dir().map_err(Failure::usage)?;
    let store = std::path::absolute(store).map_err(Failure::usage)?;
    Ok(VirtualEngine::new(
        *kernel,
        way,
        program,
        store,
        lab::environment(arguments),
    ))
}

/// The same for arms whose chains are in this store.
pub(super) fn virtual_engine_with(
    kernel: Box<Kernel>,
    way: Interception,
    arguments: &[OsString],
    chains: &Store,
) -> Result<VirtualEngine, Failure> {
    let engine = virtual_engine(kernel, way, arguments)?;
    // Guests are given a link to it.
    Ok(engine.with_chains(chains.absolute().map_err(Failure::usage)?))
}

/// Measures one experiment, and keeps nothing on the disk.
pub(super) fn measure(
    engine: &dyn Engine,
    experiment: &Experiment,
    arms: &[PreparedArm],
    percentiles: &[Percentile],
    interrupt: &AtomicBool,
    bar: &Bar,
    inspection: Option<&Inspection>,
) -> Result<Run, Failure> {
    let study = compared(experiment, percentiles);
    engine.check(&study).map_err(Failure::Usage)?;
    engine.equip(&study)?;
    let is_live = engine.environment().engine == EngineName::Live;
    let is_given = experiment.cpu != CpuTime::default() && !experiment.has_foreign_servers();
    if is_live && is_given {
        bar.warn(&format!(
            "--cpu {} changes nothing: in real time, computing is part of every time",
            experiment.cpu
        ));
    }
    if experiment.has_early_ends() {
        bar.ends_early();
    }
    if let Some(inspection) = inspection {
        let checked = inspection.check(&study, engine.block_size(&study));
        checked.map_err(Failure::Usage)?;
    }
    if let (Some(_), EngineName::Virtual) = (experiment.concurrency, engine.environment().engine) {
        bar.warn(
            "--concurrency changes nothing: in virtual time there is one connection at a time",
        );
    }
    let run = lab::run_in_passing(&Runner {
        study: &study,
        engine,
        arms,
        interrupt,
        watcher: bar,
        inspection,
    });
    bar.finish();
    Ok(run?)
}

/// One experiment as a study.
fn compared(experiment: &Experiment, percentiles: &[Percentile]) -> Study {
    let mut study = Study::single("compare", experiment.clone());
    study.percentiles = percentiles.to_vec();
    study.percentiles.sort_unstable();
    study.percentiles.dedup();
    Study {
        text: study.to_toml(),
        ..study
    }
}
