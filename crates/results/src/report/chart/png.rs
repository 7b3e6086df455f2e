//! Pictures of dots.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Dots for each pixel of the drawing.
const SCALE: f32 = 2.0;

/// Draws pictures with the fonts of this machine.
pub(in super::super) struct Painter(Arc<fontdb::Database>);

impl Painter {
    /// # Errors
    ///
    /// When the machine has no font, with the hint.
    pub(in super::super) fn find() -> Result<Option<Painter>, String> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        let names = |face: &fontdb::FaceInfo| face.families.first().map(|(name, _)| name.clone());
        let all: Vec<String> = fonts.faces().filter_map(names).collect();
        // What a style calls sans-serif is some font, and any is better than none.
        let is_sans = |name: &&String| name.contains("Sans") && !name.contains("Mono");
        let usual = all.iter().find(is_sans).or(all.first()).cloned();
        let usual = usual.ok_or(
            "no font to write PNG files with: install one (apt-get install fonts-dejavu-core)",
        )?;
        fonts.set_sans_serif_family(usual);
        Ok(Some(Painter(Arc::new(fonts))))
    }

    /// A drawing as PNG.
    ///
    /// # Errors
    ///
    /// Why it can't be drawn.
    pub(in super::super) fn png(&self, svg: &str) -> Result<Vec<u8>, String> {
        let options = Options {
            fontdb: Arc::clone(&self.0),
            font_family: "sans-serif".to_owned(),
            ..Options::default()
        };
        let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
        let size = tree.size();
        let [width, height] =
            [size.width(), size.height()].map(|pixels| (pixels * SCALE).ceil() as u32);
        let mut dots = Pixmap::new(width, height).ok_or("the figure has no size")?;
        let scale = Transform::from_scale(SCALE, SCALE);
        resvg::render(&tree, scale, &mut dots.as_mut());
        dots.encode_png().map_err(|error| error.to_string())
    }
}
