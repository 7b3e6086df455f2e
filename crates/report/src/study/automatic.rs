//! Figures for a study that describes none.

use crate::chart::COLOURS;
use lastbyte_results::Metric;
use lastbyte_study::{Cell, Figure, Filter, Measure, Parameter, Percentile, Plot, Study, varying};

/// Panels of a figure, at most.
const PANELS: usize = 9;

/// The increase of each measure, and its times.
pub(super) fn figures(study: &Study) -> Vec<Figure> {
    study
        .measures
        .iter()
        .flat_map(|measure| figures_of(study, measure))
        .collect()
}

fn figures_of(study: &Study, measure: &Measure) -> Vec<Figure> {
    let experiment = &measure.experiment;
    let cells: Vec<&Cell> = experiment.cells.iter().collect();
    let mut facets = varying(&cells);
    // Names tell networks, where all have one.
    let are_named = cells.iter().all(|cell| cell.link_name.is_some());
    if are_named && Parameter::LINK.values(&cells).len() > 1 {
        facets.retain(|parameter| !parameter.is_of_link());
        facets.insert(0, Parameter::LINK);
    }
    let x = axis(&facets, &cells);
    facets.retain(|parameter| Some(*parameter) != x);
    let has_data = cells.iter().any(|cell| cell.work().requests > 0);
    let metric = match has_data {
        _ if cells.iter().all(|cell| cell.page.is_some()) => Metric::Load,
        true => Metric::Ttlb,
        false => Metric::Handshake,
    };
    let plots: &[Plot] = match (experiment.arms.len(), x) {
        (1, None) => &[Plot::Percentiles, Plot::Cdf],
        (1, Some(_)) => &[Plot::Percentiles],
        // Bars and lines of more than there are colours are not told apart.
        (more, None) if more > COLOURS => &[Plot::Dots],
        (_, None) => &[Plot::Percentiles, Plot::Increase, Plot::Cdf],
        (_, Some(_)) => &[Plot::Increase, Plot::Percentiles],
    };
    let parts = parts(&cells, &mut facets);
    // Lines of three percentiles for each of several arms are a tangle.
    let usual: Vec<Percentile> = match experiment.arms.len() {
        ..=2 => Vec::new(),
        _ => study.percentiles.first().copied().into_iter().collect(),
    };
    let figure = |plot: Plot, part: &Filter, nth: usize| Figure {
        id: match parts.len() {
            1 => format!("{}-{plot}", measure.id),
            _ => format!("{}-{plot}-{}", measure.id, nth + 1),
        },
        title: None,
        measures: vec![measure.id.clone()],
        plot,
        x,
        facets: facets.clone(),
        metric,
        arms: Vec::new(),
        cells: part.clone(),
        pool: Vec::new(),
        percentiles: match plot {
            Plot::Increase => usual.clone(),
            _ => Vec::new(),
        },
        beside: Vec::new(),
    };
    (parts.iter().enumerate())
        .flat_map(|(nth, part)| plots.iter().map(move |plot| (nth, part, *plot)))
        .map(|(nth, part, plot)| figure(plot, part, nth))
        .collect()
}

/// What is best along the axis: data, else what has the most values.
fn axis(varying: &[Parameter], cells: &[&Cell]) -> Option<Parameter> {
    let preferred = [Parameter::DATA, Parameter::UPLOAD];
    if let Some(known) = preferred.into_iter().find(|known| varying.contains(known)) {
        return Some(known);
    }
    let numbers = varying
        .iter()
        .filter(|parameter| cells.iter().all(|cell| parameter.number(cell).is_some()));
    let most = numbers.max_by_key(|parameter| parameter.values(cells).len());
    most.or(varying.first()).copied()
}

/// Where facets make more panels than can be looked at, those of the last ones are figures of their own.
fn parts(cells: &[&Cell], facets: &mut Vec<Parameter>) -> Vec<Filter> {
    let mut parts = vec![Vec::new()];
    loop {
        let panels: usize = (facets.iter())
            .map(|facet| facet.values(cells).len())
            .product();
        if panels <= PANELS {
            break;
        }
        // The one with the fewest values makes the fewest figures.
        let fewest = (facets.iter().enumerate())
            .min_by_key(|(_, facet)| facet.values(cells).len())
            .map(|(index, _)| index);
        let Some(index) = fewest else { break };
        let facet = facets.remove(index);
        parts = parts
            .into_iter()
            .flat_map(|part: Vec<(Parameter, Vec<String>)>| {
                facet.values(cells).into_iter().map(move |value| {
                    let mut part = part.clone();
                    part.push((facet, vec![value]));
                    part
                })
            })
            .collect();
    }
    let alternatives = |part: Vec<_>| {
        if part.is_empty() {
            Filter::default()
        } else {
            Filter::of(part)
        }
    };
    parts.into_iter().map(alternatives).collect()
}
