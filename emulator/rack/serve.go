package rack

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/space"
)

// Bounds of the HTTPS service, in real time. A request as a whole has no time
// limit: inserting media takes as long as fetching the image. Its body has
// that of Config.BodyPace.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeader       = 64 << 10        // bytes
	shutdownTimeout = 3 * time.Second // for requests in flight when the rack ends
)

const (
	advancers    = 32               // hosts that advance at the same time: their saves share a commit
	saveInterval = 10 * time.Minute // lab time between two saves of the time alone
)

var errRackEnded = errors.New("the rack has ended")

// Serve answers for the BMCs, advances machines when they are due and delivers
// events, until ctx ends or something fails that the rack cannot work without. It
// returns when all of that has ended. It can be called once.
func (l *Rack) Serve(ctx context.Context) error {
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	requests, dropRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer dropRequests(errRackEnded)

	var children, ipmiServers sync.WaitGroup
	secure := l.server(requests, l)
	secure.TLSConfig = l.tls.Config()
	plain := l.server(requests, http.HandlerFunc(l.servePlain))
	for _, ln := range l.listeners {
		children.Go(func() {
			if err := secure.ServeTLS(ln, "", ""); !errors.Is(err, http.ErrServerClosed) {
				fail(err)
			}
		})
	}
	if slices.ContainsFunc(l.hosts, func(h *Host) bool { return h.Dialect().BMC.Key == bmc.RSA2048 }) {
		children.Go(l.authority.PrepareRSA) // else all the first clients wait for it
	}
	children.Go(func() { _ = plain.Serve(l.plainConns) }) // ends when it is closed
	serveIPMI := func(sock *network.Datagrams) {
		ipmiServers.Go(func() { // ends when the socket is closed
			if err := l.ipmi.Serve(sock); err != nil {
				fail(err)
			}
		})
	}
	for _, sock := range l.ipmiSockets {
		serveIPMI(sock)
	}
	l.ipmiEndpoints.Serve(func(socket io.Closer, _ bool) { serveIPMI(socket.(*network.Datagrams)) })
	l.webEndpoints.Serve(func(socket io.Closer, isPlain bool) {
		ln := socket.(net.Listener)
		children.Go(func() { // ends when the listener is closed
			if isPlain {
				_ = plain.Serve(ln)
			} else {
				_ = secure.ServeTLS(ln, "", "")
			}
		})
	})
	if l.space != nil {
		children.Go(func() { _ = l.space.Run(failed) }) // ends with its context
	}
	if l.ssdp != nil {
		children.Go(func() {
			if err := l.ssdp.Serve(failed); err != nil {
				fail(err)
			}
		})
	}
	driving, stopDriving := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDriving()
	children.Go(func() {
		if err := l.drive(driving); err != nil {
			fail(err)
		}
	})
	l.faults.Start()
	l.delivery.start()
	l.machines.start(l.tick)
	l.bmcs.start(l.tick)
	l.clients.start(l.tick)
	l.releaseClock()

	<-failed.Done()
	// Requests end first: what they still do to machines needs all the rest.
	for _, h := range l.hosts {
		h.cancelWork()
	}
	l.faults.Stop()
	l.connections.ResetSilent()
	l.service.CloseStreams()
	l.previousService.CloseStreams()
	l.webEndpoints.Serve(nil)
	l.ipmiEndpoints.Serve(nil)
	_ = l.ipmiEndpoints.Close() // errors only for sockets that are closed already
	for _, sock := range l.ipmiSockets {
		_ = sock.Close()
	}
	ipmiServers.Wait()
	l.ipmi.Wait()
	_ = plain.Close() // its requests are answered without waiting
	patience, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if secure.Shutdown(patience) != nil {
		dropRequests(errRackEnded)
		_ = secure.Close() // errors only for listeners that are closed already
	}
	l.machines.stop()
	l.bmcs.stop()
	l.clients.stop()
	stopDriving()
	close(l.stopped)
	children.Wait()
	l.tasks.Wait()
	l.delivery.stop()
	l.background.stop()
	l.trapper.Stop()
	l.poster.Stop()
	if ctx.Err() != nil { // the caller has ended it
		return nil
	}
	return context.Cause(failed)
}

// server returns an HTTP server for connections to BMCs.
func (l *Rack) server(requests context.Context, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(l.tls.HTTP2)
	return &http.Server{
		Handler:           l.bodyPace.Handler(handler),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       network.WithConn,
		ConnState:         network.ConnState,
	}
}

// tick is called by the clock when something is due. The clock counts the call as
// work in flight, so tick returns when the work is done.
func (l *Rack) tick() {
	done := make(chan struct{})
	select {
	case l.ticks <- done:
		<-done
	case <-l.stopped:
	}
}

// drive advances the hosts with passed deadlines at every tick, and saves the lab's time.
func (l *Rack) drive(ctx context.Context) error {
	save := l.clock.NewTicker(saveInterval)
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case done := <-l.ticks:
			err := l.advance()
			if errors.Is(err, bmc.ErrStorageFull) { // the step stays due
				pauseBriefly(ctx)
				err = nil
			}
			close(done)
			if err != nil {
				return err
			}
		case <-save.C():
			err := errors.Join(l.faults.Save(), l.save(l.clock.Now()))
			l.reportSpace(err)
			if err != nil && !space.Full(err) {
				return err
			}
		}
	}
}

// advance advances all hosts that are due.
func (l *Rack) advance() error {
	now := l.clock.Now()
	hosts := slices.Concat(l.machines.due(now), l.bmcs.due(now), l.clients.due(l.clock.ClientNow()))
	work := make(chan *Host)
	errs := make([]error, min(advancers, len(hosts)))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for h := range work {
				if err := h.advance(); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for _, h := range hosts {
		work <- h
	}
	close(work)
	all.Wait()
	return errors.Join(errs...)
}
