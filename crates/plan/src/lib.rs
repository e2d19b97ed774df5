//! Properties, options and their provenance, resolved into a plan.
