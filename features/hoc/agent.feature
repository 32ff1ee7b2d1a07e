Feature: The LCM agent of a server
  A server whose user data enable the unit of the LCM agent executes the state items of its
  LCMMachine in its system. Agents start in no other way.

  Background:
    Given a lab with host OS configuration
    And the operator has registered the server

  Scenario: The agent executes items in the server's system
    Given this machine has "user namespaces"
    And an LCMMachine "w-0" with the items:
      """
      - {name: hello, runner: bash, version: "1", phase: prepare, params: {script: 'echo "hello from $(hostname)" >> /etc/hello'}}
      - {name: broken, runner: bash, version: "1", phase: deploy, params: {script: 'test -e /etc/mended'}}
      """
    When the operator sets the user data of a server that runs the LCM agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the item "hello" of "w-0" ends with 0
    And "w-0" reports an InternalIP of "198.18.0.0/15"
    And the server's file "/etc/hello" is "hello from w-0"
    And the item "broken" of "w-0" ends with 1
    When the command "touch /etc/mended" runs on the server
    And ten minutes pass
    Then the item "broken" of "w-0" ends with 0

  @H26
  Scenario: The agent starts at every boot, and executes nothing again
    Given this machine has "user namespaces"
    And an LCMMachine "w-0" with the items:
      """
      - {name: hello, runner: bash, version: "1", phase: prepare, params: {script: 'echo hello >> /etc/hello'}}
      """
    When the operator sets the user data of a server that runs the LCM agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the item "hello" of "w-0" ends with 0
    When the command "reboot" runs on the server
    Then the server boots again
    When the items of "w-0" become:
      """
      - {name: hello, runner: bash, version: "1", phase: prepare, params: {script: 'echo hello >> /etc/hello'}}
      - {name: next, runner: bash, version: "1", phase: prepare, params: {script: 'echo next >> /etc/hello'}}
      """
    Then the item "next" of "w-0" ends with 0
    And the server's file "/etc/hello" is "hello next"

  Scenario: A playbook changes the server
    Given this machine has "user namespaces"
    And this machine has "ansible-playbook"
    And an LCMMachine "w-0" with the items:
      """
      - name: module
        runner: bash
        version: "1"
        phase: prepare
        params:
          script: |
            mkdir -p /root/module
            echo '[{hosts: all, tasks: [{copy: {dest: /etc/played, content: "{{ values.text }}"}}, {command: sysctl -w vm.swappiness=7}]}]' > /root/module/main.yaml
      - {name: play, runner: ansible, version: "1", phase: deploy, params: {path: /root/module, playbook: main.yaml, values: '{"text": "by the playbook"}'}}
      """
    When the operator sets the user data of a server that runs the LCM agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the item "play" of "w-0" ends with 0
    And the server's file "/etc/played" is "by the playbook"
    When the command "sysctl -n vm.swappiness > /etc/swappiness" runs on the server
    Then the server's file "/etc/swappiness" is "7"

  Scenario: A server without the agent in its user data never reports
    Given an LCMMachine "w-0" with the items:
      """
      - {name: hello, runner: bash, version: "1", phase: prepare, params: {script: 'echo hello >> /etc/hello'}}
      """
    When the operator sets the user data of a server that lacks the LCM agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the server's file "/etc/lab-agent/lcm.yaml" contains "w-0"
    When ten minutes pass
    Then no agent reports to "w-0"
    And the server has no file "/etc/hello"

  @H24
  Scenario: A playbook that asks for input, and one that does not end
    Given this machine has "user namespaces"
    And this machine has "ansible-playbook"
    And an LCMMachine "w-0" with the items:
      """
      - name: playbooks
        runner: bash
        version: "1"
        phase: prepare
        params:
          script: |
            mkdir -p /root/play
            echo '[{hosts: all, vars_prompt: [{name: answer, prompt: Go on?}], tasks: [{pause: {prompt: Press return}}, {shell: "read -r line && touch /etc/answered"}]}]' > /root/play/asks.yaml
            echo '[{hosts: all, gather_facts: false, tasks: [{shell: "echo begun > /etc/begun; exec sleep 3600"}]}]' > /root/play/endless.yaml
      - {name: asks, runner: ansible, version: "1", phase: deploy, params: {path: /root/play, playbook: asks.yaml}}
      """
    When the operator sets the user data of a server that runs the LCM agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the item "asks" of "w-0" ends with 2
    And the server has no file "/etc/answered"
    When the items of "w-0" become:
      """
      - {name: endless, runner: ansible, version: "1", phase: deploy, params: {path: /root/play, playbook: endless.yaml, timeout: 8s}}
      """
    Then the item "endless" of "w-0" ends with 124
    And the server's file "/etc/begun" is "begun"

  Scenario: An agent whose token is refused goes on with a new one
    Given this machine has "user namespaces"
    And an LCMMachine "w-0" with the items:
      """
      - {name: hello, runner: bash, version: "1", phase: prepare, params: {script: 'echo hello >> /etc/hello'}}
      """
    When the operator sets the user data of a server that runs the LCM agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the item "hello" of "w-0" ends with 0
    When the service account of the agent of "w-0" is replaced
    And the items of "w-0" become:
      """
      - {name: hello, runner: bash, version: "1", phase: prepare, params: {script: 'echo hello >> /etc/hello'}}
      - {name: next, runner: bash, version: "1", phase: prepare, params: {script: 'echo next >> /etc/hello'}}
      """
    Then the item "next" of "w-0" does not begin
    When the operator writes a new token of the agent of "w-0" to the server
    And ten minutes pass
    Then the item "next" of "w-0" ends with 0
    And the server's file "/etc/hello" is "hello next"
