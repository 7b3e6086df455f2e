//! A site as a folder: `site.json`, and a folder for each origin.

use std::fs;
use std::io;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::{Answer, Content, Field, Site, SiteError};
use crate::page::Page;

/// The version of `site.json`.
const VERSION: u32 = 1;
/// The largest `site.json`.
const MOST_JSON: u64 = 4 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    version: u32,
    origins: Vec<Origin>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Origin {
    /// With a port where it is not the usual one.
    name: String,
    /// Where its files are, in the site's folder.
    root: String,
    answers: Vec<Described1>,
}

/// An answer: a file of the origin's root, or where else it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described1 {
    resource: usize,
    path: String,
    fields: Vec<Field>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    recorded: bool,
}

pub(super) fn write(site: &Site, folder: &Path) -> Result<(), SiteError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| SiteError::File { path, error }
    };
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder)(error))?,
        _ => fs::create_dir_all(folder).map_err(failed(folder))?,
    }
    let mut origins = Vec::new();
    for (place, name) in site.origins.iter().enumerate() {
        let root = format!("o{place}");
        let inside = folder.join(&root);
        fs::create_dir(&inside).map_err(failed(&inside))?;
        let mut answers = Vec::new();
        for answer in site.answers.iter().filter(|answer| answer.origin == place) {
            let mut described = Described1 {
                resource: answer.resource,
                path: answer.path.clone(),
                fields: (answer.fields.iter())
                    .map(|(name, value)| Field {
                        name: name.clone(),
                        value: value.clone(),
                    })
                    .collect(),
                file: None,
                bytes: None,
                location: None,
                recorded: answer.is_recorded,
            };
            match &answer.content {
                Content::Elsewhere(location) => described.location = Some(location.clone()),
                Content::Body(body) => {
                    let file = match answer.path.as_str() {
                        "/" => "index.html".to_owned(),
                        path => path.trim_start_matches('/').to_owned(),
                    };
                    let path = inside.join(&file);
                    fs::write(&path, body).map_err(failed(&path))?;
                    described.file = Some(file);
                    described.bytes = Some(body.len() as u64);
                }
            }
            answers.push(described);
        }
        origins.push(Origin {
            name: name.clone(),
            root,
            answers,
        });
    }
    let described = Described {
        version: VERSION,
        origins,
    };
    let path = folder.join("site.json");
    let text = serde_json::to_vec_pretty(&described).map_err(io::Error::from);
    text.and_then(|text| lastbyte_files::write(&path, &text))
        .map_err(failed(&path))
}

pub(super) fn read(folder: &Path) -> Result<Site, SiteError> {
    let path = folder.join("site.json");
    let named = path.display().to_string();
    let form = |problem: String| SiteError::Form {
        path: named.clone(),
        problem,
    };
    let text = lastbyte_files::read(&path, MOST_JSON).map_err(|error| SiteError::File {
        path: named.clone(),
        error,
    })?;
    let described: Described =
        serde_json::from_slice(&text).map_err(|error| form(error.to_string()))?;
    if described.version != VERSION {
        let problem = format!(
            "it is of version {}, and {VERSION} is known",
            described.version
        );
        return Err(form(problem));
    }
    let mut answers = Vec::new();
    let mut left = Page::MOST_BYTES * 2;
    for (origin, described) in described.origins.iter().enumerate() {
        for answer in &described.answers {
            let content = match (&answer.file, &answer.location) {
                (None, Some(location)) => Content::Elsewhere(location.clone()),
                (Some(file), None) => {
                    let inside = Path::new(&described.root).join(file);
                    let is_inside = |part| matches!(part, Component::Normal(_));
                    if !inside.components().all(is_inside) {
                        return Err(form(format!("{file:?} is outside the folder")));
                    }
                    let path = folder.join(&inside);
                    let body =
                        lastbyte_files::read(&path, left).map_err(|error| SiteError::File {
                            path: path.display().to_string(),
                            error,
                        })?;
                    if answer.bytes != Some(body.len() as u64) {
                        let problem = format!(
                            "{file:?} has {} bytes, and should have {:?}",
                            body.len(),
                            answer.bytes.unwrap_or(0)
                        );
                        return Err(form(problem));
                    }
                    left -= body.len() as u64;
                    Content::Body(body)
                }
                _ => {
                    let path = &answer.path;
                    return Err(form(format!("{path:?} needs either a file or a location")));
                }
            };
            let fields = answer.fields.iter();
            answers.push(Answer {
                resource: answer.resource,
                origin,
                path: answer.path.clone(),
                fields: fields
                    .map(|field| (field.name.clone(), field.value.clone()))
                    .collect(),
                content,
                is_recorded: answer.recorded,
            });
        }
    }
    answers.sort_by_key(|answer| answer.resource);
    let whole = answers
        .iter()
        .enumerate()
        .all(|(place, answer)| answer.resource == place);
    if !whole || answers.is_empty() {
        return Err(form("it has not one answer for each resource".to_owned()));
    }
    Ok(Site {
        origins: described
            .origins
            .into_iter()
            .map(|origin| origin.name)
            .collect(),
        answers,
        grown: Vec::new(),
    })
}
