package lab

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// startControl opens the lab's control socket. It answers before the other parts
// have started, so that a lab that starts slowly can be asked and stopped.
func (l *Lab) startControl(ctx context.Context) error {
	if l.cfg.Fleet != nil {
		return l.startFleetControl(ctx)
	}
	remote, err := l.listenRemote(ctx)
	if err != nil {
		return err
	}
	s, err := control.New(control.Config{
		Files: l.agents.systems.files, FileChanges: l.agents.systems.changes, PutFile: l.agents.systems.putFile, Exec: l.agents.systems.exec,
		ResetSystem: l.agents.systems.reset, SystemOf: l.agents.systems.describe,
		Rack: l.rack, Log: l.cfg.Log, Info: l.info, Down: func() { l.stop(errStopped) }, Remote: remote,
	})
	if err != nil {
		return err
	}
	l.run(s.Serve)
	return nil
}

// info returns the part of the status that the lab does not know.
func (l *Lab) info() control.Status {
	st := control.Status{Images: l.ImagesURL(), SecureImages: l.SecureImagesURL(), Charts: l.ChartsURL(), Agent: l.agentProgram(), Speed: l.cfg.Settings.Speed}
	l.mu.Lock()
	defer l.mu.Unlock()
	st.Kubeconfig, st.ClusterAPIs = l.kube.kubeconfig, clusterAPIs(l.workloads)
	if l.page != "" {
		st.Metrics = l.page + "/metrics"
		st.View = view.Link(l.page, l.cfg.Dir)
	}
	return st
}

// Control returns a client of the lab's control API.
func (l *Lab) Control() *control.Client { return control.NewClient(l.cfg.Dir) }

// Hosts returns the servers as the control API describes them.
func (l *Lab) Hosts() []control.Host {
	if l.cfg.Fleet == nil {
		return control.Hosts(l.rack)
	}
	hosts, err := l.Control().Hosts(l.ctx)
	if err != nil {
		l.cfg.Log.Warn("the shards' hosts", "err", err)
	}
	return hosts
}
