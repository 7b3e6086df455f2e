//! The part of `lastbyte zeek --format json` that SQL counts, under the same keys.

use std::collections::BTreeMap;

use datafusion::arrow::json::ArrayWriter;
use datafusion::prelude::SessionContext;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::queries::query;

/// What the document has besides is passed over where it is read.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Counts {
    joined: u64,
    tls: BTreeMap<String, Version>,
    quic: Quic,
    over_quic: OverQuic,
    classes: BTreeMap<String, Class>,
    bytes_per_connection: BTreeMap<String, BTreeMap<String, Connections>>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Version {
    rows: u64,
    established: u64,
    resumed: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Quic {
    rows: u64,
    resumed: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct OverQuic {
    handshakes: u64,
    quic: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Class {
    tls: Handshakes,
    quic: Handshakes,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Handshakes {
    handshakes: u64,
    resumed: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Connections {
    connections: u64,
}

#[derive(Deserialize)]
struct JoinedRow {
    joined: u64,
}

#[derive(Deserialize)]
struct VersionRow {
    version: String,
    #[serde(flatten)]
    counts: Version,
}

#[derive(Deserialize)]
struct ClassRow {
    class: String,
    quic: bool,
    #[serde(flatten)]
    counts: Handshakes,
}

#[derive(Deserialize)]
struct ConnectionsRow {
    class: String,
    handshake: String,
    #[serde(flatten)]
    counts: Connections,
}

impl Counts {
    /// Runs the queries over the table `connections`.
    pub(crate) async fn of(context: &SessionContext) -> Result<Counts, Failure> {
        let mut counts = Counts {
            joined: only::<JoinedRow>(context, "joined").await?.joined,
            quic: only(context, "quic").await?,
            over_quic: only(context, "over_quic").await?,
            ..Counts::default()
        };
        for row in rows::<VersionRow>(context, "tls").await? {
            counts.tls.insert(row.version, row.counts);
        }
        for row in rows::<ClassRow>(context, "classes").await? {
            let class = counts.classes.entry(row.class).or_default();
            match row.quic {
                true => class.quic = row.counts,
                false => class.tls = row.counts,
            }
        }
        for row in rows::<ConnectionsRow>(context, "bytes_per_connection").await? {
            let kinds = counts.bytes_per_connection.entry(row.class).or_default();
            kinds.insert(row.handshake, row.counts);
        }
        Ok(counts)
    }

    /// SQL has no row for what there is none of; the document may.
    pub(crate) fn without_zeros(mut self) -> Counts {
        self.tls.retain(|_, counts| *counts != Version::default());
        self.classes.retain(|_, class| *class != Class::default());
        for kinds in self.bytes_per_connection.values_mut() {
            kinds.retain(|_, counts| *counts != Connections::default());
        }
        self.bytes_per_connection
            .retain(|_, kinds| !kinds.is_empty());
        self
    }
}

async fn only<Row: DeserializeOwned>(context: &SessionContext, name: &str) -> Result<Row, Failure> {
    let row = rows(context, name).await?.pop();
    row.ok_or_else(|| format!("the query {name} gives no row").into())
}

async fn rows<Row: DeserializeOwned>(
    context: &SessionContext,
    name: &str,
) -> Result<Vec<Row>, Failure> {
    let query = query(name).ok_or_else(|| format!("there is no query {name}"))?;
    let batches = context.sql(query).await?.collect().await?;
    let mut writer = ArrayWriter::new(Vec::new());
    writer.write_batches(&batches.iter().collect::<Vec<_>>())?;
    writer.finish()?;
    Ok(serde_json::from_slice(&writer.into_inner())?)
}
