//! Dashboards for Grafana, made from tables of panels (`tables`, `mongodb`). They load without edits: the data source and the
//! instance are variables of the dashboard.

pub mod mongodb;
mod panel;
pub mod tables;

use crate::grafana::panel::{Dashboard, Panel, PanelKind};
use serde_json::{Value, json};

/// Version of Grafana's dashboard JSON model that is written.
pub const SCHEMA_VERSION: u32 = 39;

/// Columns of Grafana's grid.
const COLUMNS: u32 = 24;

/// Height of a panel in the grid.
const HEIGHT: u32 = 8;

/// Height of a heading.
const HEADING: u32 = 1;

/// Every dashboard: name of its file, and its JSON model.
pub fn build_dashboards() -> Vec<(String, Value)> {
    tables::DASHBOARDS.iter().map(|dashboard| (format!("{}.json", dashboard.uid), model(dashboard))).collect()
}

fn model(dashboard: &Dashboard) -> Value {
    let mut panels = Vec::new();
    let mut y = 0;
    for (heading, row) in dashboard.rows {
        let id = panels.len() + 1;
        panels.push(json!({
            "id": id, "type": "row", "title": heading, "collapsed": false, "panels": [],
            "gridPos": { "x": 0, "y": y, "w": COLUMNS, "h": HEADING }
        }));
        y += HEADING;
        let mut x = 0;
        for shown in *row {
            if x + shown.width > COLUMNS {
                (x, y) = (0, y + HEIGHT);
            }
            panels.push(panel(shown, panels.len() + 1, (x, y)));
            x += shown.width;
        }
        y += HEIGHT;
    }
    json!({
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["dyno"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "5s",
        "time": { "from": "now-15m", "to": "now" },
        "timepicker": {},
        "timezone": "browser",
        "annotations": { "list": [] },
        "links": [{ "type": "dashboards", "tags": ["dyno"], "title": "dyno", "asDropdown": false, "keepTime": true,
                    "includeVars": false, "targetBlank": false, "icon": "dashboard", "tooltip": "", "url": "" }],
        "templating": { "list": variables(dashboard) },
        "panels": panels
    })
}

/// The data source, and which of the instances that have the dashboard's metric.
fn variables(dashboard: &Dashboard) -> Value {
    let query = format!("label_values({}, instance)", dashboard.present);
    json!([
        { "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0,
          "current": {}, "options": [], "refresh": 1, "regex": "", "multi": false, "includeAll": false },
        { "name": "instance", "label": "Instance", "type": "query", "hide": 0, "datasource": source(),
          "definition": query, "query": { "query": query, "refId": "instance" }, "current": {}, "options": [],
          "refresh": 2, "regex": "", "sort": 1, "multi": true, "includeAll": true, "allValue": ".*" }
    ])
}

/// The tables' abbreviations in Grafana's words.
fn expanded(expression: &str) -> String {
    expression.replace("[@]", "[$__rate_interval]").replace('@', "instance=~\"$instance\"")
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn panel(shown: &Panel, id: usize, (x, y): (u32, u32)) -> Value {
    let targets: Vec<Value> = shown
        .queries
        .iter()
        .zip('A'..)
        .map(|(query, letter)| {
            json!({ "refId": letter.to_string(), "datasource": source(), "expr": expanded(query.expression),
                    "legendFormat": query.legend, "range": true, "instant": false, "editorMode": "code" })
        })
        .collect();
    let options = match shown.kind {
        PanelKind::Lines => json!({
            "legend": { "displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": ["mean", "max"] },
            "tooltip": { "mode": "multi", "sort": "desc" }
        }),
        PanelKind::Number => json!({
            "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false }, "colorMode": "value",
            "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto"
        }),
    };
    json!({
        "id": id,
        "type": shown.kind.name(),
        "title": shown.title,
        "description": shown.description,
        "datasource": source(),
        "gridPos": { "x": x, "y": y, "w": shown.width, "h": HEIGHT },
        "fieldConfig": { "defaults": { "unit": shown.unit, "min": 0 }, "overrides": [] },
        "options": options,
        "targets": targets
    })
}
