package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Bounds of the HTTPS service, in real time. A request has none as a whole:
// inserting media takes as long as the image does.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10        // bytes
	farewell      = 3 * time.Second // for requests in flight when the lab ends
)

const (
	advancers = 32               // hosts that are advanced at the same time: their saves share a commit
	saveTime  = 10 * time.Minute // of the lab, between two saves of its time alone
)

var errEnded = errors.New("lab: ended")

// Serve answers for the BMCs, advances machines when they are due and tells
// events, until ctx ends or something fails that the lab cannot do without. It
// returns when all of that has ended; it can be called once.
func (l *Lab) Serve(ctx context.Context) error {
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	requests, drop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer drop(errEnded)

	var children sync.WaitGroup
	srv := l.server(requests)
	for _, ln := range l.listeners {
		children.Go(func() {
			if err := srv.ServeTLS(ln, "", ""); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("lab: %w", err))
			}
		})
	}
	if slices.ContainsFunc(l.hosts, func(h *Host) bool { return h.Dialect().BMC.Key == bmc.RSA2048 }) {
		children.Go(l.ca.prepare) // or the first clients wait for it, all of them
	}
	plain := &http.Server{
		Handler: http.HandlerFunc(l.unsecured), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: srv.ErrorLog, BaseContext: srv.BaseContext, ConnContext: withConn, ConnState: connState,
	}
	children.Go(func() { _ = plain.Serve(l.plain) }) // until it is closed
	var mailmen sync.WaitGroup
	serveMail := func(of io.Closer) {
		mailmen.Go(func() { // until it is closed
			if err := l.ipmi.Serve(of.(*datagrams)); err != nil {
				fail(fmt.Errorf("lab: %w", err))
			}
		})
	}
	for _, sock := range l.sockets {
		serveMail(sock)
	}
	l.mail.start(func(of io.Closer, _ bool) { serveMail(of) })
	l.doors.start(func(of io.Closer, isPlain bool) {
		ln := of.(net.Listener)
		children.Go(func() { // until it is closed
			if isPlain {
				_ = plain.Serve(ln)
			} else {
				_ = srv.ServeTLS(ln, "", "")
			}
		})
	})
	if l.ssdp != nil {
		children.Go(func() {
			if err := l.ssdp.Serve(failed); err != nil {
				fail(fmt.Errorf("lab: %w", err))
			}
		})
	}
	driving, park := context.WithCancel(context.WithoutCancel(ctx))
	defer park()
	children.Go(func() {
		if err := l.drive(driving); err != nil {
			fail(err)
		}
	})
	l.startFaults()
	l.delivery.start()
	l.machines.start(l.tick)
	l.bmcs.start(l.tick)
	l.unserved()

	<-failed.Done()
	// Requests first: what they still do to machines needs all the rest.
	for _, h := range l.hosts {
		h.abandon()
	}
	l.endFaults()
	l.conns.dropSilent()
	l.service.CloseStreams()
	l.stale.CloseStreams()
	l.doors.start(nil)
	l.mail.start(nil)
	_ = l.mail.close() // its error is that of sockets, which are closed
	for _, sock := range l.sockets {
		_ = sock.Close()
	}
	mailmen.Wait()
	l.ipmi.Wait()
	_ = plain.Close() // what it answers is answered at once
	patience, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if srv.Shutdown(patience) != nil {
		drop(errEnded)
		_ = srv.Close() // the error is that of listeners, which are closed
	}
	l.machines.stop()
	l.bmcs.stop()
	park()
	close(l.stopped)
	children.Wait()
	l.carrying.Wait()
	l.delivery.stop()
	l.errands.end()
	l.trapper.Stop()
	l.poster.Stop()
	if ctx.Err() != nil { // as asked
		return nil
	}
	return context.Cause(failed)
}

func (l *Lab) server(requests context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // as BMCs do
	protocols.SetHTTP2(l.http2)
	return &http.Server{
		Handler:           l,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		Protocols:         protocols,
		TLSConfig:         l.tlsConfig(),
		ErrorLog:          slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       withConn,
		ConnState:         connState,
	}
}

// tick is what the clock calls when something is due. The clock counts it as
// work in flight, so it returns when the work is done.
func (l *Lab) tick() {
	done := make(chan struct{})
	select {
	case l.ticks <- done:
		<-done
	case <-l.stopped:
	}
}

// drive advances what is due at every tick, and keeps the lab's time.
func (l *Lab) drive(ctx context.Context) error {
	save := l.clock.NewTicker(saveTime)
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case done := <-l.ticks:
			err := l.advance()
			close(done)
			if err != nil {
				return err
			}
		case <-save.C():
			l.faults.mu.Lock()
			err := errors.Join(l.saveFaults(), l.store.Save(l.clock.Now()))
			l.faults.mu.Unlock()
			if err != nil {
				return fmt.Errorf("lab: %w", err)
			}
		}
	}
}

// advance moves all hosts on that are due.
func (l *Lab) advance() error {
	now := l.clock.Now()
	hosts := append(l.machines.due(now), l.bmcs.due(now)...)
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
