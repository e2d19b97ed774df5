//! Starting the processes of a server, in the order in which they need each other, and waiting for them.

use crate::servers::launch::{Launch, group_or_none};
use crate::servers::server::Server;
use crate::servers::server_process::{LAST_LINES, ServerProcess};
use dyno_config::server::Part;
use dyno_databases::registry::server;
use dyno_db::cluster::{ClusterError, ProcessGroup, with_all};
use dyno_db::servers::ServerNode;
use dyno_localhost::error::LocalError;
use dyno_localhost::process;
use dyno_types::secret::{mask_arguments, mask_settings};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

impl Server {
    /// Starts all processes on the data there are, and waits for them.
    pub(super) fn launch_all(&mut self) -> Result<(), LocalError> {
        if self.spec.drop_caches {
            self.drop_caches()?;
        }
        let is_router = |member: &ServerProcess| self.spec.part(member.node.number as u32) == Part::Router;
        // Routers have no server to ask before the others have found together.
        let (routers, first): (Vec<usize>, Vec<usize>) =
            (0..self.members.len()).partition(|i| is_router(&self.members[*i]));
        self.launch_and_await(&first)?;
        let kind = server(self.spec.kind);
        self.together(|group| kind.form(group))?;
        if !routers.is_empty() {
            self.launch_and_await(&routers)?;
            self.together(|group| kind.join(group))?;
        }
        self.formed = true;
        self.describe_death().map_or(Ok(()), |why| Err(LocalError::Failed(why)))
    }

    fn launch_and_await(&mut self, which: &[usize]) -> Result<(), LocalError> {
        let ready = which.iter().try_for_each(|i| self.launch(*i));
        let ready = ready.and_then(|()| which.iter().try_for_each(|i| self.await_ready(*i)));
        if ready.is_err() {
            // Those after it will not be waited for.
            for i in which {
                let _ = self.hide(*i);
            }
        }
        ready
    }

    /// Takes a step with the processes of each instance.
    fn together(
        &self,
        step: impl Fn(&ProcessGroup<'_>) -> Result<(), ClusterError> + Sync,
    ) -> Result<(), LocalError> {
        let nodes = self.members.iter().map(|member| &member.node).collect::<Vec<_>>();
        let instances = nodes.chunks(self.spec.processes_each() as usize);
        let (spec, made, control) = (&self.spec, self.formed, self.control.as_deref());
        let groups: Vec<ProcessGroup<'_>> =
            instances.map(|nodes| ProcessGroup { spec, nodes, made, control }).collect();
        let end = || self.members.iter().filter_map(ServerProcess::pid).for_each(process::end_group);
        with_all(&groups, step, control, &end)
    }

    /// Starts a process that was killed again on its data, and waits until it answers and knows its place.
    pub(super) fn revive(&mut self, i: usize) -> Result<(), LocalError> {
        tracing::info!(server = self.members[i].node.name, "a server is started again on its data");
        self.launch_and_await(&[i])?;
        let own = &self.members[i].node;
        let all = self.members.iter().map(|member| &member.node);
        let nodes: Vec<&ServerNode> = all.filter(|node| node.instance == own.instance).collect();
        let rejoined = server(self.spec.kind).rejoin(&self.spec, &nodes, own.number);
        rejoined.map_err(|why| LocalError::failed_step(&nodes[own.number].name, why))
    }

    fn launch(&mut self, i: usize) -> Result<(), LocalError> {
        let (go_on, limits, clocked) = (self.goes_on(), self.limits(), self.clocked(i)?);
        let member = &mut self.members[i];
        let name = format!("{}-{}", std::process::id(), member.node.name);
        let data = member.node.data.clone();
        let (journal, notes) = (&mut self.journal, &mut self.notes);
        member.group = group_or_none(&self.machine, &name, &limits, &data, journal, go_on, notes)?;
        let told = server(self.spec.kind).launch_config(&self.spec, &member.node, &self.version)?;
        if let Some((name, text)) = &told.configuration {
            let file = member.node.home.join(name);
            // It may hold a password.
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file);
            let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
            written.map_err(|e| LocalError::failed_step(file.display(), e))?;
        }
        let program = match self.spec.part(member.node.number as u32) {
            Part::Router => self.router.as_ref().unwrap_or(&self.program),
            _ => &self.program,
        };
        let launch = Launch {
            program,
            arguments: &told.arguments,
            prefix: &[member.prefix.clone(), clocked].concat(),
            group: member.group.as_ref(),
            folder: &member.node.home,
            log: &member.node.log_path(),
            lasting: self.lasting,
        };
        member.command = launch.command_line();
        // The server's own file has its password; options of the file may hold others.
        let words =
            dyno_types::shell::split_words(&member.command).unwrap_or_else(|_| vec![member.command.clone()]);
        let command = dyno_types::shell::quoted(&mask_arguments(&words));
        let (child, noted) = launch.start(&self.machine, &mut self.journal).inspect_err(|error| {
            tracing::error!(server = member.node.name, command, %error, "a server could not be started");
        })?;
        tracing::info!(
            server = member.node.name,
            pid = child.id(),
            command,
            placement = member.plan.describe_plan(),
            data = %member.node.data.display(),
            "a server has been started"
        );
        (member.child, member.answering, member.ended) = (Some(child), None, None);
        member.noted = Some(noted);
        let pid = member.pid().unwrap_or(0);
        self.note_leavings(pid)
    }

    fn await_ready(&mut self, i: usize) -> Result<(), LocalError> {
        let begun = Instant::now();
        let awaited = self.await_answer(i);
        let (server, after_ms) = (&self.members[i].node.name, begun.elapsed().as_millis() as u64);
        match &awaited {
            Ok(()) => tracing::info!(server, after_ms, "a server is ready"),
            Err(error) => tracing::error!(server, after_ms, %error, "a server is not ready"),
        }
        // The server answers or has ended: in both cases it has read its configuration, which stays in the run's folder.
        awaited.and(self.hide(i))
    }

    /// Masks passwords in the configuration of a process, which is written anew before it is started again.
    fn hide(&self, i: usize) -> Result<(), LocalError> {
        let member = &self.members[i];
        let told = server(self.spec.kind).launch_config(&self.spec, &member.node, &self.version)?;
        let Some((name, text)) = told.configuration else { return Ok(()) };
        let (file, masked) = (member.node.home.join(name), mask_settings(&text));
        match masked == text || !file.exists() {
            true => Ok(()),
            false => std::fs::write(&file, masked).map_err(|e| LocalError::failed_step(file.display(), e)),
        }
    }

    fn await_answer(&mut self, i: usize) -> Result<(), LocalError> {
        let begun = Instant::now();
        let patience = Duration::from_nanos(self.spec.ready_within.0);
        loop {
            if let Some(why) = self.members[i].end_status() {
                return Err(LocalError::Failed(why));
            }
            let member = &self.members[i];
            let pid = member.pid().unwrap_or(0);
            match server(self.spec.kind).ready(&self.spec, &member.node, Some((&self.machine, pid))) {
                Ok(answering) => {
                    self.members[i].answering = answering;
                    break self.members[i].tell_watchers();
                }
                Err(_) if self.control.as_ref().is_some_and(|control| control.is_stopping()) => {
                    return Err(LocalError::Failed(format!("{}: no longer waited for", member.node.name)));
                }
                Err(why) if begun.elapsed() > patience => {
                    return Err(LocalError::Failed(format!(
                        "{} is not ready after {}: {why}; {}",
                        member.node.name,
                        self.spec.ready_within,
                        process::last_lines(&member.node.log_path(), LAST_LINES)
                    )));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        let member = &self.members[i];
        let effective = process::effective_placement(&self.machine, member.server().unwrap_or(0));
        // Without taskset there is no placement, and that has been said.
        match member.plan.confirm(&effective) {
            Err(why) if !member.prefix.is_empty() => Err(LocalError::failed_step(&member.node.name, why)),
            _ => self.confirm_clock(i),
        }
    }
}
