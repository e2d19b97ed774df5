//! A kind of store, for help texts and the schema of experiment files.

use crate::options::OptionSpec;

/// A kind of store that [`crate::open`] knows.
#[derive(Clone, Copy, Debug)]
pub struct StoreKind {
    /// Word before the colon of its URI.
    pub scheme: &'static str,
    /// The URI without options.
    pub form: &'static str,
    /// Description of the store, in a few words.
    pub about: &'static str,
    /// The options its URI accepts.
    pub options: &'static [OptionSpec],
    /// True if this build has it: most are features of cargo.
    pub built: bool,
    /// Package of the library that it needs on Debian; none where everything is compiled.
    pub library: Option<&'static str>,
}

impl StoreKind {
    /// That this build does not have it, and what would; nothing if it has.
    pub fn describe_missing(&self) -> Option<String> {
        let (name, scheme) = (self.about.split(',').next().unwrap_or_default(), self.scheme);
        (!self.built).then(|| {
            let library = self.library.map(|package| format!(" ({package})")).unwrap_or_default();
            format!("{scheme}: this build has no {name}: build with --features {scheme}{library}")
        })
    }
}
