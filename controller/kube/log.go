package kube

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	_ "github.com/metalab-dev/metalab/controller/kube/etcdquiet" // etcd's clients
)

// reporter takes the errors of one API's parts. While the API starts or stops
// they complain of each other's absence, which mends itself or comes back as
// the error of Start or Stop: then they are details, at verbosity 1.
type reporter struct {
	log   logr.Logger
	ready atomic.Bool
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

// logger returns a logger that passes on errors and drops the rest.
func (r *reporter) logger() logr.Logger {
	return logr.New(errorSink{to: func() *reporter { return r }})
}

var (
	hushOnce sync.Once
	// latest takes the errors that do not say which API they come from.
	latest atomic.Pointer[reporter]
)

// hush keeps upstream, which talks on standard error as if the process were its
// own, to errors, and sends those to r. Both switches belong to the process.
func hush(r *reporter) {
	latest.Store(r)
	hushOnce.Do(func() {
		klog.SetLogger(logr.New(errorSink{to: latest.Load}))
		// Warnings are for people at a terminal; kubectl shows its own.
		rest.SetDefaultWarningHandler(rest.NoWarnings{})
	})
}

// errorSink is a logr.LogSink that knows only errors. It asks for its
// destination each time, because klog's logger cannot be replaced safely while
// anything runs.
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

// etcdLog returns a zap logger that passes on errors.
func etcdLog(r *reporter) *zap.Logger {
	return zap.New(etcdCore{LevelEnabler: zap.ErrorLevel, log: r.logger().WithName("etcd")})
}

// etcdCore is a zapcore.Core over a logr.Logger.
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

// split returns fields as logr has them: the error apart from the rest.
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
