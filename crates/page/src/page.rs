//! What a page consists of, and what finds what.

use lastbyte_link::Bytes;
use thiserror::Error;

/// A page: resources, of which the first is its document, or redirects to it.
///
/// Every other one is found in one that stands before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    resources: Vec<Resource>,
    /// What is there in the end: of redirects, where they lead.
    landings: Vec<Kind>,
    /// In what each is named: where it is found, or where the redirect is that leads to it.
    finders: Vec<Option<usize>>,
}

/// Something that a browser asks a server for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// What it is for.
    pub kind: Kind,
    /// How large its body is on the wire.
    pub body: Bytes,
    /// Which of the page's origins has it, from 0.
    pub origin: u8,
    /// The place of the resource in which a browser finds it; none for the first one alone.
    pub found_in: Option<usize>,
    /// How it is named there, and so what waits for it.
    pub loading: Loading,
    /// What a browser observed of it when it was recorded; none of a model's.
    pub observed: Option<Observed>,
}

/// What a recorded load says of a resource besides. It is there of all resources of a page, or of none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// In which line of its document it is named, from 0: what is named in a smaller one stands before it.
    pub line: u32,
    /// How urgent the browser found it in the end. None of a browser that does not say.
    pub priority: Option<Priority>,
    /// How urgent it found it when it asked, if that is known.
    pub asked: Option<Priority>,
    /// Whether CORS was asked for (Fetch, 3.3): from another origin, without credentials, and so over a connection of its own.
    pub is_cors: bool,
    /// The bytes of its response, with fields and frames. None where the body's are all that is known.
    pub response: Option<Bytes>,
    /// What a browser may keep of it. None where no fields were recorded.
    pub caching: Option<Caching>,
}

/// How urgent a browser finds a request, in Chromium's words (`ResourcePriority`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// `VeryLow`
    VeryLow,
    /// `Low`
    Low,
    /// `Medium`
    Medium,
    /// `High`
    High,
    /// `VeryHigh`
    VeryHigh,
}

lastbyte_link::named!(Priority, "priority", {
    VeryLow => "VeryLow",
    Low => "Low",
    Medium => "Medium",
    High => "High",
    VeryHigh => "VeryHigh",
});

/// What a browser may keep of a response, and for how long (RFC 9111). Of `immutable` and `must-revalidate` nothing depends when a link is
/// followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Whether and for how long.
    pub keeping: Keeping,
    /// Whether it has an entity tag or a date, by which a server can answer that it has not changed (304).
    pub has_validator: bool,
}

/// Whether and for how long a response may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Not at all (`no-store`).
    Never,
    /// It is kept.
    For {
        /// Taken for so many seconds without asking; 0 is `no-cache`.
        fresh: u32,
        /// And for so many more while it is asked for (`stale-while-revalidate`, RFC 5861).
        stale: u32,
    },
}

/// What a resource is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// HTML: the page itself, or a frame in it.
    Document,
    /// CSS.
    Style,
    /// JavaScript.
    Script,
    /// A picture.
    Image,
    /// A font.
    Font,
    /// Data that a script asks for.
    Fetch,
    /// Sends the browser on to the only resource that is found in it, which may be elsewhere.
    Redirect,
}

lastbyte_link::named!(Kind, "kind of resource", {
    Document => "document",
    Style => "style",
    Script => "script",
    Image => "image",
    Font => "font",
    Fetch => "fetch",
    Redirect => "redirect",
});

/// How a resource is named, and so what waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loading {
    /// As HTML has it for its kind: a style holds up painting, a script the parser.
    #[default]
    Usual,
    /// A script that runs after the document was read (`defer`). Of other kinds the same as usual.
    Deferred,
    /// A script that runs as soon as it is there (`async`). Of other kinds the same as usual.
    Async,
    /// A module (`type=module`), or what a module imports: it runs after the document was read. Of other kinds the same as usual.
    Module,
    /// Something that a script within the document names, once that runs.
    Inserted,
    /// A picture that is asked for once it is known where it stands (`loading=lazy`). Of other kinds the same as usual.
    Lazy,
}

lastbyte_link::named!(Loading, "way of loading", {
    Usual => "usual",
    Deferred => "defer",
    Async => "async",
    Module => "module",
    Inserted => "inserted",
    Lazy => "lazy",
});

/// Why something is no page.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    /// Nothing at all.
    #[error("the page has no resource: it needs a document at least")]
    Empty,
    /// The first resource.
    #[error("the page begins with {a} {kind}: it has to begin with its document", a = article(.kind))]
    NoDocument {
        /// What it is.
        kind: Kind,
    },
    /// A resource that nothing before it finds.
    #[error("resource {index} is found in {found_in}: name one that stands before it")]
    Order {
        /// Which.
        index: usize,
        /// Where it says it is found.
        found_in: String,
    },
    /// A kind in which nothing, or nothing of that kind, is found.
    #[error("resource {index} is {a} {kind}, found in {b} {in_kind}: a browser finds none there", a = article(.kind), b = article(.in_kind))]
    NotThere {
        /// Which.
        index: usize,
        /// What it is.
        kind: Kind,
        /// What it is found in.
        in_kind: Kind,
    },
    /// A redirect to nothing, or to several.
    #[error("resource {index} is a redirect to {targets} resources: it needs exactly 1")]
    Redirect {
        /// Which.
        index: usize,
        /// How many are found in it.
        targets: usize,
    },
    /// Origins.
    #[error(
        "resource {index} is of origin {origin}: a page has at most {most}, from 0 and without gaps"
    )]
    Origin {
        /// Which.
        index: usize,
        /// Whose it says it is.
        origin: u8,
        /// The largest number of origins.
        most: u8,
    },
    /// Too many of them.
    #[error("the page has {count} origins: at most {most} are loaded")]
    TooManyOrigins {
        /// How many.
        count: usize,
        /// The largest number.
        most: u8,
    },
    /// Origins that have nothing.
    #[error("the page has {origins} origins, but so few resources that they need {used}")]
    Origins {
        /// How many it should have.
        origins: u8,
        /// How many have something.
        used: u8,
    },
    /// Too many.
    #[error("the page has {count} resources: at most {most} are loaded")]
    TooMany {
        /// How many.
        count: usize,
        /// The largest number.
        most: usize,
    },
    /// Too large.
    #[error("the page has {bytes} bytes of bodies: at most {most} are loaded")]
    TooLarge {
        /// All together.
        bytes: u64,
        /// The largest number.
        most: u64,
    },
}

fn article(kind: &Kind) -> &'static str {
    match kind {
        Kind::Image => "an",
        _ => "a",
    }
}

impl Page {
    /// The most resources.
    pub const MOST_RESOURCES: usize = 2_000;
    /// The most bytes of all bodies together, which servers and browsers hold in memory.
    pub const MOST_BYTES: u64 = 256 << 20;
    /// The most origins.
    pub const MOST_ORIGINS: u8 = 64;

    /// A page of resources.
    ///
    /// # Errors
    ///
    /// If a browser could not find them as they say, or could not load them all.
    pub fn new(resources: Vec<Resource>) -> Result<Page, PageError> {
        let first = resources.first().ok_or(PageError::Empty)?;
        if !matches!(first.kind, Kind::Document | Kind::Redirect) {
            return Err(PageError::NoDocument { kind: first.kind });
        }
        if resources.len() > Page::MOST_RESOURCES {
            return Err(PageError::TooMany {
                count: resources.len(),
                most: Page::MOST_RESOURCES,
            });
        }
        let bytes = (resources.iter()).fold(0_u64, |sum, one| sum.saturating_add(one.most().0));
        if bytes > Page::MOST_BYTES {
            return Err(PageError::TooLarge {
                bytes,
                most: Page::MOST_BYTES,
            });
        }
        let mut targets = vec![0; resources.len()];
        let mut finders: Vec<Option<usize>> = Vec::new();
        let mut origins = 0;
        for (index, resource) in resources.iter().enumerate() {
            if (index == 0) != resource.found_in.is_none() || resource.found_in >= Some(index) {
                let place = |place| format!("resource {place}");
                let found_in = resource.found_in.map_or("nothing".to_owned(), place);
                return Err(PageError::Order { index, found_in });
            }
            let above = resource
                .found_in
                .filter(|above| is_redirect(&resources, *above));
            finders.push(match above {
                None => resource.found_in,
                Some(above) => {
                    if let Some(count) = targets.get_mut(above) {
                        *count += 1;
                    }
                    finders.get(above).copied().flatten()
                }
            });
            if resource.origin > origins || resource.origin >= Page::MOST_ORIGINS {
                return Err(PageError::Origin {
                    index,
                    origin: resource.origin,
                    most: Page::MOST_ORIGINS,
                });
            }
            origins = origins.max(resource.origin + 1);
        }
        let of_redirects = targets.iter().enumerate();
        let wrong =
            |(index, targets): &(usize, &usize)| is_redirect(&resources, *index) && **targets != 1;
        if let Some((index, &targets)) = of_redirects.clone().find(wrong) {
            return Err(PageError::Redirect { index, targets });
        }
        let mut landings: Vec<Kind> = resources.iter().map(|resource| resource.kind).collect();
        // Targets stand behind their redirects.
        for index in (0..resources.len()).rev() {
            let above = resources.get(index).and_then(|resource| resource.found_in);
            let above = above.filter(|above| is_redirect(&resources, *above));
            if let (Some(kind), Some(above)) = (
                landings.get(index).copied(),
                above.and_then(|above| landings.get_mut(above)),
            ) {
                *above = kind;
            }
        }
        let page = Page {
            resources,
            landings,
            finders,
        };
        if page.landing(0) != Kind::Document {
            return Err(PageError::NoDocument {
                kind: page.landing(0),
            });
        }
        for index in 0..page.resources.len() {
            let finder = page
                .finder(index)
                .and_then(|place| page.resources.get(place));
            let kind = page.landing(index);
            if let Some(finder) = finder.filter(|finder| !finder.kind.finds(kind)) {
                let in_kind = finder.kind;
                return Err(PageError::NotThere {
                    index,
                    kind,
                    in_kind,
                });
            }
        }
        Ok(page)
    }

    /// Where a resource is named: in what it is found in, or where that is a redirect, in what names that.
    pub(crate) fn finder(&self, place: usize) -> Option<usize> {
        self.finders.get(place).copied().flatten()
    }

    /// What is there in the end: of a redirect, where it leads.
    pub(crate) fn landing(&self, place: usize) -> Kind {
        self.landings.get(place).copied().unwrap_or(Kind::Fetch)
    }

    /// All of it, the document first.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// How many origins have something of it.
    #[must_use]
    pub fn origins(&self) -> u8 {
        let last = self.resources.iter().map(|resource| resource.origin).max();
        last.map_or(0, |last| last + 1)
    }

    /// All bodies together.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.resources.iter().map(|resource| resource.body.0).sum())
    }
}

impl Resource {
    /// The most bytes that its body can have.
    fn most(&self) -> Bytes {
        let response = self.observed.and_then(|observed| observed.response);
        response.map_or(self.body, |response| response.max(self.body))
    }
}

fn is_redirect(resources: &[Resource], place: usize) -> bool {
    let resource = resources.get(place);
    resource.is_some_and(|resource| resource.kind == Kind::Redirect)
}

impl Kind {
    /// Whether a browser can find a `kind` in this one.
    #[must_use]
    pub fn finds(self, kind: Kind) -> bool {
        match self {
            Kind::Document | Kind::Script => true,
            Kind::Style => matches!(kind, Kind::Style | Kind::Image | Kind::Font),
            // Whoever names the redirect has to find it.
            Kind::Redirect => true,
            Kind::Image | Kind::Font | Kind::Fetch => false,
        }
    }
}
