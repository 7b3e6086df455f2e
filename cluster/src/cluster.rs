//! `lastbyte-sql scheduler` and `lastbyte-sql executor`.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};

use crate::{Failure, logger};

/// Executors ask for work, so only they and clients have to reach the scheduler, and each other.
const POLICY: TaskSchedulingPolicy = TaskSchedulingPolicy::PullStaged;

/// A busy executor is heard of every 5 s.
const LEAST_PATIENCE_SECONDS: u64 = 10;

#[derive(Debug, Args)]
pub(crate) struct Scheduler {
    /// Where executors and clients reach it; of port 0, any that is free. What it is, is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,
    /// After so long without a word, an executor's work is given to others
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = RangedU64ValueParser::<u64>::new().range(LEAST_PATIENCE_SECONDS..))]
    patience: u64,
}

impl Scheduler {
    /// Until it is killed.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        logger::begin();
        let listener = tokio::net::TcpListener::bind(self.bind).await?;
        let bound = listener.local_addr()?;
        let config = Arc::new(SchedulerConfig {
            external_host: bound.ip().to_string(),
            bind_host: bound.ip().to_string(),
            bind_port: bound.port(),
            scheduling_policy: POLICY,
            executor_timeout_seconds: self.patience,
            expire_dead_executor_interval_seconds: 1,
            no_executors_grace_period_seconds: self.patience,
            ..SchedulerConfig::default()
        });
        let cluster = BallistaCluster::new_from_config(&config).await?;
        let scheduler =
            create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await?;
        writeln!(io::stdout(), "{bound}")?;
        start_grpc_service_with_listener(listener, scheduler).await?;
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Executor {
    /// Where the scheduler is
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    scheduler: String,
    /// Where other executors and clients get results; of port 0, any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// A folder of its own, for what is between the stages of a query
    #[arg(long, value_name = "FOLDER")]
    work: PathBuf,
    /// Tasks at once; 0 is as many as there are processors
    #[arg(long, value_name = "N", default_value_t = 0)]
    tasks: usize,
}

impl Executor {
    /// Until it is killed.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        logger::begin();
        std::fs::create_dir_all(&self.work)
            .map_err(|error| format!("{}: {error}", self.work.display()))?;
        let Some(work) = self.work.to_str() else {
            return Err(format!("{}: its name is not UTF-8", self.work.display()).into());
        };
        let (host, port) = host_and_port(&self.scheduler)?;
        start_executor_process(Arc::new(ExecutorProcessConfig {
            bind_host: self.bind.ip().to_string(),
            external_host: self.host(),
            port: self.port()?,
            // It asks for work, and listens to no one who would give it orders.
            grpc_port: 0,
            scheduler_host: host,
            scheduler_port: port,
            scheduler_connect_timeout_seconds: 30,
            vcores: self.tasks,
            task_scheduling_policy: POLICY,
            work_dir: Some(work.to_owned()),
            ..ExecutorProcessConfig::default()
        }))
        .await?;
        Ok(())
    }

    /// Where it has no address of its own, the scheduler tells others where it is heard from.
    fn host(&self) -> Option<String> {
        let address = self.bind.ip();
        (!address.is_unspecified()).then(|| address.to_string())
    }

    /// Ballista binds it by itself, and tells others the number that it is given.
    fn port(&self) -> io::Result<u16> {
        match self.bind.port() {
            0 => Ok(TcpListener::bind(self.bind)?.local_addr()?.port()),
            port => Ok(port),
        }
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let wrong = || format!("\"{text}\" is not HOST:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    Ok((host.to_owned(), port.parse().map_err(|_| wrong())?))
}
