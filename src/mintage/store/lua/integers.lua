-- Integers of 64 bits and a few more, as Lua's own numbers are exact only up to 2^53. An integer has four limbs of six
-- decimal digits, the lowest first; the highest has the sign. All products of a limb and a factor below 2^31 are exact.

local BASE = 1000000
local ZERO = { 0, 0, 0, 0 }
local ONE = { 1, 0, 0, 0 }

-- Returns p * x + q * y.
local function linear(x, p, y, q)
  local sum, carry = {}, 0
  for i = 1, 3 do
    local limb = p * x[i] + q * y[i] + carry
    carry = math.floor(limb / BASE)
    sum[i] = limb - carry * BASE
  end
  sum[4] = p * x[4] + q * y[4] + carry
  return sum
end

-- Returns the text of an integer if it is valid.
local function integer_text(text)
  if type(text) ~= 'string' or not string.match(text, '^%-?%d+$') or #text > 20 then
    error('damaged: ' .. tostring(text) .. ' is no integer')
  end
  return text
end

local function integer(text)
  local digits = string.match(integer_text(text), '%d+')
  digits = string.rep('0', 24 - #digits) .. digits
  local x = {}
  for i = 1, 4 do
    x[i] = tonumber(string.sub(digits, 25 - 6 * i, 30 - 6 * i))
  end
  return string.sub(text, 1, 1) == '-' and linear(x, -1, ZERO, 0) or x
end

local function text(x)
  if x[4] < 0 then
    return '-' .. text(linear(x, -1, ZERO, 0))
  end
  local digits = string.format('%.0f%06.0f%06.0f%06.0f', x[4], x[3], x[2], x[1])
  return (string.gsub(digits, '^0+(%d)', '%1'))
end

local function less(x, y)
  for i = 4, 1, -1 do
    if x[i] ~= y[i] then
      return x[i] < y[i]
    end
  end
  return false
end

local function modulo(x, divisor)
  local remainder = 0
  for i = 4, 1, -1 do
    remainder = (remainder * BASE + x[i]) % divisor
  end
  return remainder
end
