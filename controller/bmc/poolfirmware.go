package bmc

import (
	"context"
	"io"
)

// A pooled client implements interfaces that some drivers lack. Their methods then
// return an UnsupportedError, like that of a BMC that cannot.

var (
	_ Setup   = (*pooled)(nil)
	_ Updater = (*pooled)(nil)
)

// setup calls a method of Setup.
func (c *pooled) setup(verb string, method func(Setup) error) error {
	s, ok := c.client.(Setup)
	if !ok {
		return &UnsupportedError{Verb: verb, Why: "its driver knows no BIOS settings"}
	}
	return c.call(func() error { return method(s) })
}

// updater calls a method of Updater.
func (c *pooled) updater(verb string, method func(Updater) error) error {
	u, ok := c.client.(Updater)
	if !ok {
		return &UnsupportedError{Verb: verb, Why: "its driver updates no firmware"}
	}
	return c.call(func() error { return method(u) })
}

func (c *pooled) BIOS(ctx context.Context) (b BIOS, err error) {
	err = c.setup("BIOS", func(s Setup) error { b, err = s.BIOS(ctx); return err })
	return b, err
}

func (c *pooled) PendingBIOS(ctx context.Context) (p Settings, err error) {
	err = c.setup("PendingBIOS", func(s Setup) error { p, err = s.PendingBIOS(ctx); return err })
	return p, err
}

func (c *pooled) SetBIOS(ctx context.Context, settings Settings) error {
	return c.setup("SetBIOS", func(s Setup) error { return s.SetBIOS(ctx, settings) })
}

func (c *pooled) Components(ctx context.Context) (all []Component, err error) {
	err = c.updater("Components", func(u Updater) error { all, err = u.Components(ctx); return err })
	return all, err
}

func (c *pooled) Component(ctx context.Context, name string) (one Component, err error) {
	err = c.updater("Component", func(u Updater) error { one, err = u.Component(ctx, name); return err })
	return one, err
}

func (c *pooled) Update(ctx context.Context, component, url string) (task string, err error) {
	err = c.updater("Update", func(u Updater) error { task, err = u.Update(ctx, component, url); return err })
	return task, err
}

func (c *pooled) Push(ctx context.Context, component, name string, image io.Reader, size int64) (task string, err error) {
	err = c.updater("Push", func(u Updater) error { task, err = u.Push(ctx, component, name, image, size); return err })
	return task, err
}

func (c *pooled) Task(ctx context.Context, id string) (t Task, err error) {
	err = c.updater("Task", func(u Updater) error { t, err = u.Task(ctx, id); return err })
	return t, err
}
