//! The answer for programs. Times are in nanoseconds.

use std::time::Duration;

use serde_json::{Map, Value, json};

use lastbyte_explain::geography::{
    Aggregate, Geography, RegionTimes, RttSource, RttTable, Setting,
};

/// What [`json()`] and [`table_json`] write, as JSON Schema.
pub const SCHEMA: &str = include_str!("../../schemas/rtt-1.schema.json");

/// The answer, as [`SCHEMA`] has it.
pub fn json(geography: &Geography, table: &RttTable) -> String {
    let question = &geography.question;
    let arms: Vec<&str> = question.arms.iter().map(|arm| arm.label.as_str()).collect();
    let ways: Vec<&str> = geography.ways.iter().map(|way| way.name()).collect();
    let mut document = about(table);
    document.extend([
        ("origin".to_owned(), json!(question.origin)),
        ("arms".to_owned(), json!(arms)),
        (
            "origin_arm".to_owned(),
            json!(question.origin_arm.as_ref().map(|arm| &arm.label)),
        ),
        ("ways".to_owned(), json!(ways)),
        (
            "settings".to_owned(),
            (geography.settings.iter())
                .map(|one| setting(geography, one))
                .collect(),
        ),
    ]);
    format!("{:#}\n", Value::Object(document))
}

/// A table alone, as [`SCHEMA`] has it.
pub fn table_json(table: &RttTable) -> String {
    format!("{:#}\n", Value::Object(about(table)))
}

fn about(table: &RttTable) -> Map<String, Value> {
    let asymmetric = table.asymmetries();
    let asymmetric = asymmetric.iter().map(|pair| {
        json!({
            "from": pair.one,
            "to": pair.other,
            "there_ns": nanoseconds(pair.there),
            "back_ns": nanoseconds(pair.back),
        })
    });
    let holes = table.holes();
    let holes = (holes.iter()).map(|(from, to)| json!({ "from": from, "to": to }));
    let table = json!({
        "name": table.file,
        "about": table.head(),
        "places": table.places().collect::<Vec<_>>(),
        "rtts": table.pairs().count(),
        "holes": holes.collect::<Vec<_>>(),
        "asymmetric": asymmetric.collect::<Vec<_>>(),
    });
    Map::from_iter([
        ("schema".to_owned(), json!("lastbyte.rtt/1")),
        ("table".to_owned(), table),
    ])
}

fn setting(geography: &Geography, setting: &Setting) -> Value {
    let regions: Vec<Value> = (setting.regions.iter())
        .map(|one| region(geography, one))
        .collect();
    let population = setting.population.iter().map(|ways| {
        let ways = geography.ways.iter().zip(ways);
        let ways = ways.map(|(way, all)| (way.name().to_owned(), aggregate(all)));
        Value::Object(ways.collect())
    });
    json!({
        "stated_user_edge_ns": setting.stated.map(nanoseconds),
        "regions": regions,
        "population": population.collect::<Vec<_>>(),
    })
}

fn region(geography: &Geography, one: &RegionTimes) -> Value {
    let RegionTimes {
        region,
        distances,
        ttfb,
    } = one;
    let rtt = |(rtt, known): (Duration, RttSource)| json!({ "rtt_ns": nanoseconds(rtt), "from": known.name() });
    let ttfb = ttfb.iter().map(|times| {
        let times = geography.ways.iter().zip(times);
        let times = times.map(|(way, time)| (way.name().to_owned(), json!(nanoseconds(*time))));
        Value::Object(times.collect())
    });
    json!({
        "region": region.name,
        "users": region.users,
        "latitude": region.place.map(|place| place.latitude),
        "longitude": region.place.map(|place| place.longitude),
        "edge": distances.edge,
        "user_edge": rtt(distances.user_edge),
        "edge_origin": rtt(distances.edge_origin),
        "user_origin": rtt(distances.user_origin),
        "ttfb_ns": ttfb.collect::<Vec<_>>(),
    })
}

fn aggregate(all: &Aggregate) -> Value {
    json!({
        "mean_ns": nanoseconds(all.mean),
        "p50_ns": nanoseconds(all.p50),
        "p95_ns": nanoseconds(all.p95),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
