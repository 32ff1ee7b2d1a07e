package kube

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	// It replaces the logger of etcd's clients before they are initialised.
	_ "github.com/metalab-dev/metalab/controller/kube/etcdquiet"
)

// reporter logs the errors of etcd and of the Kubernetes components of one API. While
// the API starts or stops, its parts log that others do not answer yet, or any more.
// Such failures end by themselves, or Start or Stop returns them as its error, so they
// are logged as details at verbosity 1 then.
type reporter struct {
	log   logr.Logger
	ready atomic.Bool
	fatal func(error) // Config.Fatal; nil for none
	dir   string      // state folder
}

// OnWrite implements zapcore.CheckWriteHook for the entries after which etcd ends the
// process, by a panic or by its exit, because it could not write data that it has
// acknowledged.
func (r *reporter) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	_, err := split(fields)
	if err == nil {
		err = errors.New("see the log")
	}
	err = fmt.Errorf("etcd, which stores the objects of the Kubernetes API, cannot go on: %s: %w", e.Message, err)
	if !r.ready.Load() {
		err = fmt.Errorf("%w: "+etcdFix, err, filepath.Join(r.dir, "etcd"))
	}
	if r.fatal != nil {
		r.fatal(err)
	}
	panic(err)
}

func (r *reporter) report(name string, err error, msg string, values []any) {
	log := r.log
	if name != "" {
		log = log.WithName(name)
	}
	if r.ready.Load() {
		log.Error(err, msg, values...)
		return
	}
	if err != nil {
		values = append([]any{"error", err.Error()}, values...)
	}
	log.V(1).Info(msg, values...)
}

// logger returns a logger that passes errors to r and drops everything else.
func (r *reporter) logger() logr.Logger {
	return logr.New(errorSink{to: func() *reporter { return r }})
}

// errorSink is a logr.LogSink that handles errors only. It asks for its reporter at each
// error, because klog's logger cannot be replaced safely while any component runs.
type errorSink struct {
	to     func() *reporter
	name   string
	values []any
}

func (s errorSink) Init(logr.RuntimeInfo)    {}
func (s errorSink) Enabled(int) bool         { return false }
func (s errorSink) Info(int, string, ...any) {}

func (s errorSink) Error(err error, msg string, values ...any) {
	s.to().report(s.name, err, msg, slices.Concat(s.values, values))
}

func (s errorSink) WithValues(values ...any) logr.LogSink {
	s.values = slices.Concat(s.values, values)
	return s
}

func (s errorSink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "/" + name
	}
	s.name = name
	return s
}

// etcdLog returns a zap logger that passes errors to r and drops everything else.
func etcdLog(r *reporter) *zap.Logger {
	return zap.New(etcdCore{LevelEnabler: zap.ErrorLevel, log: r.logger().WithName("etcd")}, zap.WithFatalHook(r), zap.WithPanicHook(r))
}

// etcdCore is a zapcore.Core that logs to a logr.Logger.
type etcdCore struct {
	zapcore.LevelEnabler
	log logr.Logger
}

func (c etcdCore) With(fields []zap.Field) zapcore.Core {
	values, _ := split(fields)
	c.log = c.log.WithValues(values...)
	return c
}

func (c etcdCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c etcdCore) Write(e zapcore.Entry, fields []zap.Field) error {
	values, err := split(fields)
	c.log.Error(err, e.Message, values...)
	return nil
}

func (c etcdCore) Sync() error { return nil }

// split converts zap's fields to logr's: the first error, and keys and values for the
// others.
func split(fields []zap.Field) (values []any, err error) {
	for _, f := range fields {
		if e, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType && err == nil {
			err = e
			continue
		}
		enc := zapcore.NewMapObjectEncoder()
		f.AddTo(enc)
		values = append(values, f.Key, enc.Fields[f.Key])
	}
	return values, err
}
