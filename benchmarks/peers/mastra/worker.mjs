// Mastra's storage by the protocol of ../worker.py: `node worker.mjs libsql|postgres`.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createInterface } from 'node:readline'
import { hrtime, stdin, stdout } from 'node:process'

console.log = console.info = console.debug = console.warn = console.error // stdout is for answers

const backend = process.argv[2]
const APPENDED = '00000000-0000-4000-8000-000000000002'

const contentOf = (message) => ({
  format: 2,
  parts: [{ type: 'text', text: message.text }],
  metadata: message.metadata,
})

async function openLibsql(url) {
  const { createClient } = await import('@libsql/client')
  const { LibSQLStore } = await import('@mastra/libsql')
  // The store would set synchronous=NORMAL, which may lose commits in a power cut; all else is as it sets it.
  const client = createClient({ url: `file:${url}`, timeout: 5000 })
  for (const pragma of ['journal_mode=WAL', 'temp_store=MEMORY', 'cache_size=-16000', 'mmap_size=134217728'])
    await client.execute(`PRAGMA ${pragma}`)
  const [{ synchronous }] = (await client.execute('PRAGMA synchronous')).rows
  const store = new LibSQLStore({ id: 'bench', client })
  await store.init()
  return [store, { journal_mode: 'WAL', synchronous: synchronous === 2 ? 'FULL, in place of its NORMAL' : String(synchronous) }]
}

async function openPostgres(url) {
  const { PostgresStore } = await import('@mastra/pg')
  const store = new PostgresStore({ id: 'bench', connectionString: url, max: 10 })
  await store.init()
  return [store, { pool: 'at most 10', synchronous_commit: 'on' }]
}

class Mastra {
  constructor(store, memory, data) {
    Object.assign(this, { store, memory, data, added: 0 })
  }

  message(message, threadId, id, createdAt) {
    const { resource: resourceId } = this.data
    return { id, threadId, resourceId, role: message.role, type: 'v2', createdAt, content: contentOf(message) }
  }

  async load() {
    const { data, memory } = this
    const now = new Date()
    for (const id of [data.thread, APPENDED])
      await memory.saveThread({
        thread: { id, resourceId: data.resource, title: '', metadata: {}, createdAt: now, updatedAt: now },
      })
    const messages = data.messages.map((m) => this.message(m, data.thread, m.id, new Date(m.created_at)))
    for (let first = 0; first < messages.length; first += 500)
      await memory.saveMessages({ messages: messages.slice(first, first + 500) })
    for (const { id, title, metadata, created_at } of data.threads) {
      const at = new Date(created_at)
      await memory.saveThread({
        thread: { id, resourceId: data.lister, title, metadata, createdAt: at, updatedAt: at },
      })
    }
  }

  fresh(message) {
    this.added += 1 // a millisecond each, so that what is appended has an order
    const id = `new-${this.added}`
    return this.message(message, APPENDED, id, new Date(Date.UTC(2025, 0, 1) + this.added))
  }

  newest(threadId, more = {}) {
    const orderBy = { field: 'createdAt', direction: 'DESC' }
    return this.memory.listMessages({ threadId, perPage: 20, page: 0, orderBy, includeTotal: false, ...more })
  }

  operations = {
    append_1: (number) =>
      this.memory.saveMessages({ messages: [this.fresh(this.data.new[number % this.data.new.length])] }),
    append_100: () => this.memory.saveMessages({ messages: this.data.new.map((m) => this.fresh(m)) }),
    last_20: () => this.newest(this.data.thread),
    page_by_offset: () =>
      this.newest(this.data.thread, { page: this.data.page, orderBy: { field: 'createdAt', direction: 'ASC' } }),
    filtered_page: (number) => {
      const metadata = this.data.filters[number % this.data.filters.length]
      return this.newest(this.data.thread, { perPage: 10, filter: { metadata } })
    },
    windows: () => {
      const include = this.data.windows.map((id) => ({ id, withPreviousMessages: 2, withNextMessages: 2 }))
      return this.newest(this.data.thread, { perPage: 0, include, orderBy: { field: 'createdAt', direction: 'ASC' } })
    },
    list_threads: () => this.threads({}),
    list_threads_filtered: () => this.threads({ metadata: this.data.thread_filter }),
    clone: (number) =>
      this.memory.copyThread({ sourceThreadId: this.data.thread, newThreadId: `copy-${number}` }),
  }

  threads(filter) {
    const orderBy = { field: 'createdAt', direction: 'DESC' }
    return this.memory.listThreads({
      filter: { resourceId: this.data.lister, ...filter },
      perPage: 20,
      page: 0,
      orderBy,
    })
  }

  rows(answer) {
    if (answer.threads) return answer.threads.map((t) => [t.id, t.title, t.metadata])
    return answer.messages.map((m) => [m.id, m.content.parts[0].text, m.content.metadata])
  }

  async leftBehind(operation, answer) {
    if (operation.startsWith('append')) return this.rows(await this.newest(APPENDED))
    if (operation === 'clone') {
      const rows = this.rows(await this.newest(answer.thread.id))
      await this.memory.deleteThread({ threadId: answer.thread.id })
      return rows
    }
    return this.rows(answer)
  }

  async time(operation, [first, end]) {
    const ns = []
    let answer
    for (let number = first; number < end; number++) {
      const start = hrtime.bigint()
      answer = await this.operations[operation](number)
      ns.push(Number(hrtime.bigint() - start))
    }
    return { ns, rows: await this.leftBehind(operation, answer) }
  }
}

async function open({ url, data }) {
  const [store, settings] = await (backend === 'libsql' ? openLibsql(url) : openPostgres(url))
  const scene = JSON.parse(readFileSync(data, 'utf8'))
  const mastra = new Mastra(store, await store.getStore('memory'), scene)
  const versions = { 'Node.js': process.versions.node }
  const here = dirname(fileURLToPath(import.meta.url))
  for (const name of ['core', backend === 'libsql' ? 'libsql' : 'pg']) {
    const path = join(here, 'node_modules', '@mastra', name, 'package.json')
    versions[`@mastra/${name}`] = createRequire(import.meta.url)(path).version
  }
  const notes = { list_threads: 'counts all of them as well, always' }
  if (backend === 'libsql')
    Object.assign(notes, { last_20: 'counts all of them as well, always', append_100: 'in two batches of 50' })
  return [mastra, { versions, settings, operations: Object.keys(mastra.operations), notes }]
}

let mastra
for await (const line of createInterface({ input: stdin })) {
  const told = JSON.parse(line)
  let answer = {}
  try {
    if (told.do === 'open') [mastra, answer] = await open(told)
    else if (told.do === 'load') await mastra.load()
    else if (told.do === 'time') answer = await mastra.time(told.operation, told.numbers)
    else if (told.do === 'close') await mastra.store.close?.()
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}`.slice(0, 500) }
  }
  await new Promise((written) => stdout.write(`${JSON.stringify(answer)}\n`, written))
  if (told.do === 'close') process.exit(0)
}
