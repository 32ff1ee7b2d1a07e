package lab

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// startControl opens the lab's control socket. It answers before the other parts
// have started, so that a lab that starts slowly can be asked and stopped.
func (w *World) startControl(ctx context.Context) error {
	if w.cfg.Fleet != nil {
		return w.startFleetControl(ctx)
	}
	remote, err := w.listenRemote(ctx)
	if err != nil {
		return err
	}
	s, err := control.New(control.Config{
		Files: w.agents.systems.files, FileChanges: w.agents.systems.changes, PutFile: w.agents.systems.putFile, Exec: w.agents.systems.exec,
		Lab: w.lab, Log: w.cfg.Log, Info: w.info, Down: func() { w.stop(errStopped) }, Remote: remote,
	})
	if err != nil {
		return err
	}
	w.run(s.Serve)
	return nil
}

// info returns the part of the status that the lab does not know.
func (w *World) info() control.Status {
	st := control.Status{Images: w.ImagesURL(), SecureImages: w.SecureImagesURL(), Charts: w.ChartsURL(), Speed: w.cfg.Settings.Speed}
	w.mu.Lock()
	defer w.mu.Unlock()
	st.Kubeconfig = w.kube.kubeconfig
	if w.page != "" {
		st.Metrics = w.page + "/metrics"
		st.View = view.Link(w.page, w.cfg.Dir)
	}
	return st
}

// Control returns a client of the lab's control API.
func (w *World) Control() *control.Client { return control.NewClient(w.cfg.Dir) }

// Hosts returns the servers as the control API describes them.
func (w *World) Hosts() []control.Host {
	if w.cfg.Fleet == nil {
		return control.Hosts(w.lab)
	}
	hosts, err := w.Control().Hosts(w.ctx)
	if err != nil {
		w.cfg.Log.Warn("the shards' hosts", "err", err)
	}
	return hosts
}
