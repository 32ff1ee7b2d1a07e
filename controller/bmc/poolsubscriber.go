package bmc

import "context"

var _ Subscriber = (*pooled)(nil)

// subscriber calls a method of Subscriber.
func (c *pooled) subscriber(verb string, method func(Subscriber) error) error {
	s, ok := c.client.(Subscriber)
	if !ok {
		return &UnsupportedError{Verb: verb, Why: "its driver knows no event subscriptions"}
	}
	return c.call(func() error { return method(s) })
}

func (c *pooled) Subscriptions(ctx context.Context) (all []Subscription, err error) {
	err = c.subscriber("Subscriptions", func(s Subscriber) error { all, err = s.Subscriptions(ctx); return err })
	return all, err
}

func (c *pooled) Subscribe(ctx context.Context, one Subscription) (id string, err error) {
	err = c.subscriber("Subscribe", func(s Subscriber) error { id, err = s.Subscribe(ctx, one); return err })
	return id, err
}

func (c *pooled) Unsubscribe(ctx context.Context, id string) error {
	return c.subscriber("Unsubscribe", func(s Subscriber) error { return s.Unsubscribe(ctx, id) })
}
