//! The engine of all pages: one document with style, panes, data block and script, and a policy that
//! lets nothing else run.

use std::fmt::Write as _;
use std::io::Write;

use super::markup::escaped;
use super::modules::{Module, STYLE, joined};
use super::security::policy;
use crate::error::Result;

const TEMPLATE: &str = include_str!("../../page/page.html");

/// The mark of a page of mindprof, in its head.
const MARK: &[u8] = b"<meta name=\"generator\" content=\"mindprof\">";

/// The number of bytes at the beginning of a file that tell whether it is a page of mindprof.
pub const PAGE_HEAD_BYTES: u64 = 4096;

/// Returns whether a file that begins with some bytes is a page of mindprof, which a newer one may
/// replace.
pub fn is_page(head: &[u8]) -> bool {
    head.starts_with(b"<!doctype html>") && head.windows(MARK.len()).any(|part| part == MARK)
}

/// The script that runs before the panes are laid out: only the one that is shown needs to be.
const EARLY: &str = "document.documentElement.classList.add(\"has-scripts\");";

/// A part of a page, which the navigation leads to.
#[derive(Debug)]
pub(crate) struct Pane {
    /// Its name in the address.
    pub(crate) id: &'static str,
    /// Its name in the navigation.
    pub(crate) title: &'static str,
    /// Its contents as HTML.
    pub(crate) html: String,
    /// Whether the navigation lists it.
    pub(crate) is_listed: bool,
}

/// A whole page. Texts are plain, and escaped when it is written; the HTML of panes is not.
#[derive(Debug)]
pub(crate) struct Page {
    /// The title of the document.
    pub(crate) title: String,
    /// The text beside the title.
    pub(crate) subtitle: String,
    /// The panes, in the order of the navigation.
    pub(crate) panes: Vec<Pane>,
    /// The data for the scripts, as JSON.
    pub(crate) data: String,
    /// The scripts.
    pub(crate) modules: &'static [Module],
}

impl Page {
    /// Writes the page.
    ///
    /// # Errors
    /// Fails if `out` cannot be written to.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<()> {
        let script = joined(self.modules);
        let mut rest = TEMPLATE;
        while let Some((before, from_name)) = rest.split_once("{{") {
            let (name, after) = from_name.split_once("}}").unwrap_or((from_name, ""));
            out.write_all(before.as_bytes())?;
            match name {
                "policy" => out.write_all(escaped(&policy(STYLE, [EARLY, &script])).as_bytes())?,
                "title" => out.write_all(escaped(&self.title).as_bytes())?,
                "subtitle" => out.write_all(escaped(&self.subtitle).as_bytes())?,
                "early" => out.write_all(EARLY.as_bytes())?,
                "style" => out.write_all(STYLE.as_bytes())?,
                "navigation" => out.write_all(self.navigation().as_bytes())?,
                "panes" => self.write_panes(out)?,
                // No markup may start inside a script.
                "data" => out.write_all(self.data.replace('<', "\\u003c").as_bytes())?,
                "script" => out.write_all(script.as_bytes())?,
                other => unreachable!("unknown placeholder {other}"),
            }
            rest = after;
        }
        Ok(out.write_all(rest.as_bytes())?)
    }

    fn navigation(&self) -> String {
        let listed = self.panes.iter().filter(|pane| pane.is_listed);
        if listed.clone().count() < 2 {
            return String::new();
        }
        let mut html = String::from("<nav aria-label=\"Panes\"><ul>\n");
        for Pane { id, title, .. } in listed {
            let _ = writeln!(html, "<li><a href=\"#{id}\">{title}</a></li>");
        }
        html + "</ul></nav>\n"
    }

    fn write_panes(&self, out: &mut dyn Write) -> Result<()> {
        for pane in &self.panes {
            let Pane { id, html, .. } = pane;
            write!(
                out,
                "<section id=\"{id}\" class=\"pane\" aria-label=\"{}\">\n{html}</section>\n",
                pane.title
            )?;
        }
        Ok(())
    }
}
