//! Variables as configurations and the command line set them, the last one over those before.

use dyno_config::settings::{PropertySettings, Setting, Source};

/// Variables that are set, in order.
#[derive(Debug, Default)]
pub(super) struct VariableScopes {
    /// Values with their sources.
    pub settings: PropertySettings,
    /// Names in the order of their last assignment.
    pub order: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl VariableScopes {
    pub fn set(&mut self, name: &str, value: &str, source: Source) {
        self.settings.set_property(name, value, source);
        self.order.retain(|known| known != name);
        self.order.push(name.to_owned());
    }

    /// Returns the value of a variable, if it is set.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name)
    }
}
